"""Lists: their options, their columns, and logs."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from devos.cli import output, values
from devos.cli.commands import client, wants_json
from devos.cli.output import Column

Row = dict[str, Any]
LIMIT = 25

StatusOption = Annotated[
    list[str] | None, typer.Option("--status", help="Only this status; again (or with commas) for more.")
]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many rows.")]
AllOption = Annotated[bool, typer.Option("--all", help="All rows, however many.")]
AfterOption = Annotated[
    str | None, typer.Option("--after", metavar="MOMENT", help="Made at or after: ISO 8601, or 2h for 2 hours ago.")
]
BeforeOption = Annotated[
    str | None, typer.Option("--before", metavar="MOMENT", help="Made before: ISO 8601, or 2h for 2 hours ago.")
]
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="DAY", help="First day (UTC), like 2026-12-01; 30 days when left out.")
]
ToOption = Annotated[
    str | None, typer.Option("--to", metavar="DAY", help="Last day (UTC), included; today by default.")
]
OldestOption = Annotated[bool, typer.Option("--oldest-first", help="The oldest first.")]


def how_many(limit: int, everything: bool) -> int | None:
    return None if everything else limit


def show(
    ctx: typer.Context, path: list[str], columns: list[Column], filters: Row, limit: int | None, none: str
) -> None:
    """Print the rows at ``path``: a table, or one JSON array."""
    rows = client(ctx).items(*path, limit=limit, **filters)
    if wants_json(ctx):
        output.print_json(list(rows))
    else:
        output.table(rows, columns, none)


def actor(row: Row) -> str | None:
    """Who made it."""
    made_by = row.get("created_by") or row.get("triggered_by") or row.get("actor")
    return f"{made_by['type']} {made_by['id']}" if made_by else None


def amounts(cost: Row) -> str | None:
    """The money of a cost: ``1.25 EUR, 3 USD``."""
    return ", ".join(f"{one['amount']} {one['currency']}" for one in cost["amounts"]) or None


def tokens(cost: Row) -> str | None:
    """The tokens of a cost, in and out."""
    total = cost["input_tokens"] + cost["output_tokens"]
    return f"{cost['input_tokens']} in, {cost['output_tokens']} out" if total else None


def _attempts(job: Row) -> str:
    """How much of its budget a job has used up: interruptions and waits cost nothing."""
    return f"{job.get('counted_attempts', '-')}/{job.get('max_attempts', '-')}"


def _duration(row: Row) -> str | None:
    return output.milliseconds(row.get("duration_ms"))


def _error(row: Row) -> str | None:
    return (row.get("error") or {}).get("code")


ID = Column("ID", "id", "id")
STATUS = Column("STATUS", "status", "status")
CREATED = Column("CREATED", "created_at", "time")
PROGRESS = Column("PROGRESS", lambda row: output.progress_line(row.get("progress")))

TASK = [
    ID,
    STATUS,
    Column("TYPE", "type"),
    Column("NAME", "name"),
    PROGRESS,
    Column("ERROR", _error),
    Column("PRIORITY", "priority", "number"),
    CREATED,
]
JOB = [
    ID,
    STATUS,
    Column("ACTION", "action_id"),
    Column("QUEUE", "queue"),
    Column("ATTEMPTS", _attempts, "number"),
    PROGRESS,
    Column("WAITS FOR", lambda row: (row.get("blocked_by") or {}).get("reason")),
    Column("ERROR", _error),
    CREATED,
]
EXECUTION = [
    ID,
    STATUS,
    Column("ACTION", "action_id"),
    Column("ATTEMPT", "attempt", "number"),
    Column("TOOK", _duration, "number"),
    PROGRESS,
    Column("ERROR", _error),
    Column("STARTED", "started_at", "time"),
]
EVENT = [
    ID,
    Column("TYPE", "type"),
    Column("BY", actor),
    Column("DATA", lambda row: json.dumps(row["data"], ensure_ascii=False) if row.get("data") else None),
    Column("WHEN", "timestamp", "time"),
]


def between(after: str | None, before: str | None, oldest_first: bool) -> Row:
    """The filters of a list that is ordered by time."""
    return {
        "created_after": values.past(after, "--after") if after else None,
        "created_before": values.past(before, "--before") if before else None,
        "ordering": "created_at" if oldest_first else None,
    }


def logs(ctx: typer.Context, path: list[str], follow: bool) -> None:
    """Print the log lines of the thing at ``path``, and with ``follow`` those to come until it has ended."""
    from devos.cli import follow as following

    api = client(ctx)
    as_json = wants_json(ctx)
    tail = following.LogTail(api, *path, "logs")
    if not follow:
        # One array for programs; for people line by line, as the pages come.
        if as_json:
            output.print_json(list(tail.new()))
        else:
            for line in tail.new():
                print_log(line)
        return
    following.follow_logs(api, path, tail, _print_log_json if as_json else print_log)


def print_log(line: Row) -> None:
    text = output.log_line(line)
    output.styled(text, output.COLOURS.get(str(line.get("level")), ""))


def _print_log_json(line: Row) -> None:
    typer.echo(json.dumps(line, ensure_ascii=True))
