"""`devos queue`: where jobs wait."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from devos.cli import output, values
from devos.cli.commands import DevosCommand, client, noun, wants_json
from devos.cli.output import Column

app = noun()

QueueArgument = Annotated[str, typer.Argument(metavar="QUEUE", help="The name of a queue, like default.")]


def _status(row: dict[str, Any]) -> str:
    return "paused" if row["paused"] else "active"


@app.command("list", cls=DevosCommand)
def list_queues(ctx: typer.Context) -> None:
    """List the queues, with how much waits in each."""
    rows = client(ctx).items("queues")
    if wants_json(ctx):
        output.print_json(list(rows))
        return
    columns = [
        Column("QUEUE", "name", "id"),
        Column("STATUS", _status, "status"),
        Column("QUEUED", "queued", "number"),
        Column("RUNNING", "running", "number"),
        Column("WAITING", "waiting", "number"),
        Column("WORKERS", "workers", "number"),
        Column("OLDEST", "oldest_waiting_at", "time"),
        Column("PAUSED BY", lambda row: row["paused_by"] if row["paused"] else None),
        Column("REASON", lambda row: row["pause_reason"] if row["paused"] else None),
        Column("UNTIL", lambda row: row["paused_until"] if row["paused"] else None, "time"),
    ]
    output.table(rows, columns, "There are no queues.")


@app.command("show", cls=DevosCommand)
def show(ctx: typer.Context, queue: QueueArgument) -> None:
    """Show a queue."""
    found = client(ctx).get("queues", queue)
    if wants_json(ctx):
        output.print_json(found)
    else:
        _print(found)


def _print(found: dict[str, Any]) -> None:
    output.fields(
        [
            ("queue", found["name"]),
            ("about", found.get("description")),
            ("status", _status(found)),
            *(_pause(found) if found["paused"] else []),
            ("queued", found.get("queued")),
            ("running", found.get("running")),
            ("waiting", found.get("waiting")),
            ("oldest", output.moment(found.get("oldest_waiting_at"))),
            ("workers", found.get("workers")),
        ]
    )


def _pause(found: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        ("paused by", found.get("paused_by")),
        ("reason", found.get("pause_reason")),
        ("paused", output.moment(found.get("paused_at"))),
        ("until", output.moment(found.get("paused_until"))),
    ]


@app.command("pause", cls=DevosCommand)
def pause(
    ctx: typer.Context,
    queue: QueueArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why; everybody who wonders will read it.")] = "",
    until: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="Until an ISO 8601 moment, or for a time span like 30m.")
    ] = None,
) -> None:
    """Hand out no more jobs from a queue. What runs goes on."""
    body = {"reason": reason} | ({"until": values.moment(until, "--until")} if until else {})
    _changed(ctx, client(ctx).post("queues", queue, "pause", body=body))


@app.command("resume", cls=DevosCommand)
def resume(ctx: typer.Context, queue: QueueArgument) -> None:
    """Hand out jobs again."""
    _changed(ctx, client(ctx).post("queues", queue, "resume"))


def _changed(ctx: typer.Context, found: dict[str, Any]) -> None:
    if wants_json(ctx):
        output.print_json(found)
    else:
        typer.echo(f"{found['name']} {_status(found)}")
