"""`devos retention`: delete what is over and old."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from devos.cli import local
from devos.cli.commands import wants_json

_LABELS = {
    "partitions": "months of events and log lines",
    "partition_rows": "  rows in them, about",
    "tasks": "tasks, in whole trees",
    "jobs": "  jobs of them",
    "executions": "  executions of them",
    "sync_runs": "executions of sync mode",
    "stray_events": "old events outside of their month",
    "stray_logs": "old log lines outside of their month",
}


def retention(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing, only count what would go.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Delete all that is older than DEVOS_KEEP_COMPLETED_D, DEVOS_KEEP_FAILED_D and DEVOS_KEEP_EVENTS_D say.

    The platform does this by itself, a little each minute. It may be stopped and repeated at any time.
    """
    local.prepare()
    from tasks_app.maintenance import retention as work

    counts = work.preview() if dry_run else work.run()
    if as_json or wants_json(ctx):
        typer.echo(json.dumps(counts))
        return
    typer.echo("Would be deleted:" if dry_run else "Deleted:")
    for name, count in counts.items():
        typer.echo(f"{count:>14,}  {_LABELS[name]}")
