"""`devos job`: what tasks consist of."""

from __future__ import annotations

from typing import Annotated

import typer

from devos.cli import lists, output
from devos.cli.commands import DevosCommand, client, noun, wants_json

app = noun()

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The id of a job (job_...).")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; it is kept in the audit.")]


@app.command("list", cls=DevosCommand)
def list_jobs(
    ctx: typer.Context,
    status: lists.StatusOption = None,
    queue: Annotated[str | None, typer.Option("--queue", help="Only this queue.")] = None,
    action: Annotated[str | None, typer.Option("--action", help="Only this action, or seo.* for more.")] = None,
    task: Annotated[str | None, typer.Option("--task", help="Only jobs of this task.")] = None,
    after: lists.AfterOption = None,
    before: lists.BeforeOption = None,
    oldest_first: lists.OldestOption = False,
    limit: lists.LimitOption = lists.LIMIT,
    all_: lists.AllOption = False,
) -> None:
    """List jobs, the newest first."""
    filters = {"status": status, "queue": queue, "action": action, "task": task}
    filters |= lists.between(after, before, oldest_first)
    lists.show(ctx, ["jobs"], lists.JOB, filters, lists.how_many(limit, all_), "No jobs match.")


@app.command("show", cls=DevosCommand)
def show(ctx: typer.Context, job: JobArgument) -> None:
    """Show a job with its attempts."""
    api = client(ctx)
    found = api.get("jobs", job)
    if wants_json(ctx):
        output.print_json(found)
        return
    blocked = found.get("blocked_by") or {}
    output.fields(
        [
            ("job", found["id"]),
            ("task", found.get("task_id")),
            ("action", found.get("action_id")),
            ("status", found["status"]),
            ("waits for", blocked.get("reason")),
            ("not before", output.moment(found.get("available_at")) if blocked else None),
            ("progress", output.progress_line(found.get("progress"))),
            ("error", output.error_line(found.get("error"))),
            ("queue", found.get("queue")),
            ("priority", found.get("priority")),
            ("attempts", f"{found.get('counted_attempts')} of {found.get('max_attempts')}"),
            ("interruptions", found.get("interruptions") or None),
            ("worker", found.get("worker_id")),
            ("created", output.moment(found.get("created_at"))),
            ("started", output.moment(found.get("started_at"))),
            ("ended", output.moment(found.get("completed_at"))),
        ]
    )
    output.document("input", found.get("input"))
    output.document("output", found.get("output"))
    typer.echo("")
    output.table(api.items("executions", job=found["id"], limit=20), lists.EXECUTION, "It has not been started.")


def _steered(ctx: typer.Context, job: str, verb: str, reason: str) -> None:
    found = client(ctx).post("jobs", job, verb, body={"reason": reason})
    if wants_json(ctx):
        output.print_json(found)
    else:
        typer.echo(f"{found['id']} {found['status']}")


@app.command("retry", cls=DevosCommand)
def retry(ctx: typer.Context, job: JobArgument, reason: ReasonOption = "") -> None:
    """Run a failed job again, with a fresh budget of attempts."""
    _steered(ctx, job, "retry", reason)


@app.command("cancel", cls=DevosCommand)
def cancel(ctx: typer.Context, job: JobArgument, reason: ReasonOption = "") -> None:
    """Cancel a job: one that waits ends at once, one that runs is told to stop."""
    _steered(ctx, job, "cancel", reason)
