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
    gone: Annotated[bool, typer.Option("--gone", help="Those that have stopped or died instead.")] = False,
    limit: lists.LimitOption = lists.LIMIT,
    all_: lists.AllOption = False,
) -> None:
    """List the workers that are alive."""
    rows: Any = client(ctx).items("workers", limit=lists.how_many(limit, all_), alive=str(not gone).lower())
    if wants_json(ctx):
        output.print_json(list(rows))
        return
    columns = [
        Column("ID", "id", "id"),
        Column("STATUS", _status, "status"),
        Column("HOST", "hostname"),
        Column("PID", "pid", "number"),
        Column("QUEUES", "queues"),
        Column("PROCESSES", "concurrency", "number"),
        Column("RUNNING", lambda row: len(row["running"]), "number"),
        Column("MEMORY MB", "rss_mb", "number"),
        Column("STARTED", "started_at", "time"),
        Column("SEEN", "last_seen_at", "time"),
    ]
    nothing = "No worker has stopped." if gone else "No worker is running. `devos up` starts them."
    output.table(rows, columns, nothing)


def _status(row: dict[str, Any]) -> str:
    return "alive" if row["alive"] else "stopped" if row["stopped_at"] else "lost"
