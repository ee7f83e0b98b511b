"""`devos worker`: the processes that run jobs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from devos.cli import lists, output
from devos.cli.commands import DevosCommand, client, noun, wants_json
from devos.cli.output import Column

app = noun()


@app.command("list", cls=DevosCommand)
def list_workers(
    ctx: typer.Context,
    stopped: Annotated[bool, typer.Option("--stopped", help="Also those that have stopped.")] = False,
    limit: lists.LimitOption = lists.LIMIT,
    all_: lists.AllOption = False,
) -> None:
    """List the workers that live."""
    rows: Any = client(ctx).items("workers", limit=lists.how_many(limit, all_))
    if wants_json(ctx):
        output.print_json(list(rows))
        return
    columns = [
        Column("ID", "id", "id"),
        Column("STATUS", "status", "status"),
        Column("HOST", "hostname"),
        Column("PID", "pid", "number"),
        Column("QUEUES", "queues"),
        Column("PROCESSES", "concurrency", "number"),
        Column("RUNNING", "running", "number"),
        Column("MEMORY MB", "rss_mb", "number"),
        Column("STARTED", "started_at", "time"),
        Column("SEEN", "last_seen_at", "time"),
    ]
    output.table(rows, columns, "No worker is running. `devos up` starts them.")
