"""`devos execution`: single attempts at running an action."""

from __future__ import annotations

from typing import Annotated

import typer

from devos.cli import lists, output
from devos.cli.commands import DevosCommand, client, noun, wants_json

app = noun()

ExecutionArgument = Annotated[str, typer.Argument(metavar="EXECUTION", help="The id of an execution (exec_...).")]


@app.command("list", cls=DevosCommand)
def list_executions(
    ctx: typer.Context,
    status: lists.StatusOption = None,
    action: Annotated[str | None, typer.Option("--action", help="Only this action, or seo.* for more.")] = None,
    task: Annotated[str | None, typer.Option("--task", help="Only attempts of this task.")] = None,
    job: Annotated[str | None, typer.Option("--job", help="Only attempts of this job.")] = None,
    mode: Annotated[str | None, typer.Option("--mode", help="Only sync, async or stream.")] = None,
    after: lists.AfterOption = None,
    before: lists.BeforeOption = None,
    oldest_first: lists.OldestOption = False,
    limit: lists.LimitOption = lists.LIMIT,
    all_: lists.AllOption = False,
) -> None:
    """List executions, the newest first."""
    filters = {"status": status, "action": action, "task": task, "job": job, "mode": mode}
    filters |= lists.between(after, before, oldest_first)
    lists.show(ctx, ["executions"], lists.EXECUTION, filters, lists.how_many(limit, all_), "No executions match.")


@app.command("show", cls=DevosCommand)
def show(ctx: typer.Context, execution: ExecutionArgument) -> None:
    """Show an execution."""
    found = client(ctx).get("executions", execution)
    if wants_json(ctx):
        output.print_json(found)
        return
    output.fields(
        [
            ("execution", found["id"]),
            ("task", found.get("task_id")),
            ("job", found.get("job_id")),
            ("action", found.get("action_id")),
            ("version", found.get("action_version")),
            ("status", found["status"]),
            ("progress", output.progress_line(found.get("progress"))),
            ("error", output.error_line(found.get("error"))),
            ("mode", found.get("mode")),
            ("attempt", found.get("attempt")),
            ("by", lists.actor(found)),
            ("worker", "{id} ({hostname}, pid {pid})".format(**found["worker"]) if found.get("worker") else None),
            ("started", output.moment(found.get("started_at"))),
            ("ended", output.moment(found.get("completed_at"))),
            ("took", output.milliseconds(found.get("duration_ms"))),
            ("interrupted", "yes" if found.get("interrupted") else None),
        ]
    )
    output.document("input", found.get("input"))
    output.document("output", found.get("output"))
    traceback = (found.get("error") or {}).get("traceback")
    if traceback:
        typer.echo(f"traceback:\n{output.clean(traceback)}")


@app.command("logs", cls=DevosCommand)
def logs(
    ctx: typer.Context,
    execution: ExecutionArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the execution ends.")] = False,
) -> None:
    """Print what an execution logged, the oldest first. --follow with --json prints one JSON document a line."""
    lists.logs(ctx, ["executions", execution], follow)
