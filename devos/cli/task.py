"""`devos task`: submit, watch and steer tasks."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from devos.cli import lists, output, values
from devos.cli import submission as sub
from devos.cli.commands import DevosCommand, client, noun, wants_json
from devos.cli.errors import CliError

app = noun()

TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="The id of a task (task_...).")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; it is kept in the audit.")]


@app.command("list", cls=DevosCommand)
def list_tasks(
    ctx: typer.Context,
    search: Annotated[str | None, typer.Argument(help="Only tasks whose name or type contains this.")] = None,
    status: lists.StatusOption = None,
    type: Annotated[str | None, typer.Option("--type", help="Only this task type (action), or seo.* for more.")] = None,
    project: Annotated[str | None, typer.Option("--project", help="Only this project, by slug or id.")] = None,
    parent: Annotated[str | None, typer.Option("--parent", metavar="TASK", help="Only children of this task.")] = None,
    after: lists.AfterOption = None,
    before: lists.BeforeOption = None,
    oldest_first: lists.OldestOption = False,
    limit: lists.LimitOption = lists.LIMIT,
    all_: lists.AllOption = False,
) -> None:
    """List tasks, the newest first."""
    filters = {"status": status, "type": type, "project": project, "parent": parent, "q": search}
    filters |= lists.between(after, before, oldest_first)
    lists.show(ctx, ["tasks"], lists.TASK, filters, lists.how_many(limit, all_), "No tasks match.")


@app.command("show", cls=DevosCommand)
def show(ctx: typer.Context, task: TaskArgument) -> None:
    """Show a task with its jobs, error and output."""
    api = client(ctx)
    found = api.get("tasks", task)
    if wants_json(ctx):
        output.print_json(found)
        return
    output.fields(
        [
            ("task", found["id"]),
            ("type", found.get("type")),
            ("name", found.get("name")),
            ("status", found["status"]),
            ("progress", output.progress_line(found.get("progress"))),
            ("error", output.error_line(found.get("error"))),
            ("priority", found.get("priority")),
            ("project", found.get("project")),
            ("created by", lists.actor(found)),
            ("created", output.moment(found.get("created_at"))),
            ("started", output.moment(found.get("started_at"))),
            ("ended", output.moment(found.get("completed_at"))),
            ("parent", found.get("parent_task")),
            ("replay of", found.get("replay_of")),
            ("cancelled", found.get("cancel_reason")),
        ]
    )
    output.document("input", found.get("input"))
    output.document("output", found.get("output"))
    typer.echo("")
    output.table(api.items("tasks", task, "jobs", limit=20), lists.JOB, "It has no jobs.")


@app.command("submit", cls=DevosCommand)
def submit(
    ctx: typer.Context,
    type: Annotated[str, typer.Argument(metavar="TYPE", help="The task type: the id of an action.")],
    input: sub.InputOption = None,
    input_json: sub.InputJsonOption = None,
    input_file: sub.InputFileOption = None,
    follow: sub.FollowOption = False,
    priority: sub.PriorityOption = None,
    queue: sub.QueueOption = None,
    delay: sub.DelayOption = None,
    run_at: Annotated[str | None, typer.Option(metavar="MOMENT", help="Not before this ISO 8601 moment.")] = None,
    name: sub.NameOption = None,
    description: Annotated[str | None, typer.Option(help="More about the task.")] = None,
    project: sub.ProjectOption = None,
    parent: Annotated[str | None, typer.Option(metavar="TASK", help="The task it is a child of.")] = None,
    max_attempts: Annotated[int | None, typer.Option(min=1, max=100, help="Attempts before it fails.")] = None,
    resource: Annotated[str | None, typer.Option(metavar="TYPE:ID", help="The thing it is about.")] = None,
    idempotency_key: sub.IdempotencyOption = None,
) -> None:
    """Submit a task."""
    spec = sub.spec(
        priority=priority,
        queue=queue,
        delay=delay,
        run_at=values.moment(run_at, "--run-at") if run_at else None,
        name=name,
        description=description,
        project=project,
        parent_task=parent,
        max_attempts=max_attempts,
        resource=_resource(resource),
    )
    api = client(ctx)
    task = sub.submit(api, sub.Wanted(type, input or [], input_json, input_file, spec, idempotency_key))
    _submitted(ctx, api, task, follow)


def _resource(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise CliError(f"--resource {text!r} must be TYPE:ID, like website:example.org.")
    return {"type": kind, "id": name}


def _submitted(ctx: typer.Context, api: Any, task: dict[str, Any], follow: bool) -> None:
    if not follow:
        sub.submitted(task, wants_json(ctx))
        return
    sub.ended(sub.watch(api, task["id"], wants_json(ctx)), wants_json(ctx))


def _steered(ctx: typer.Context, task: str, verb: str, body: dict[str, Any]) -> None:
    """POST a verb and show the state the task is in now."""
    sub.submitted(client(ctx).post("tasks", task, verb, body=body), wants_json(ctx))


@app.command("cancel", cls=DevosCommand)
def cancel(ctx: typer.Context, task: TaskArgument, reason: ReasonOption = "") -> None:
    """Cancel a task and its children: what waits ends at once, what runs is told to stop."""
    _steered(ctx, task, "cancel", {"reason": reason})


@app.command("retry", cls=DevosCommand)
def retry(ctx: typer.Context, task: TaskArgument, reason: ReasonOption = "") -> None:
    """Run the failed jobs of a task again, with a fresh budget of attempts."""
    _steered(ctx, task, "retry", {"reason": reason})


# Or a negative priority would be taken for an option.
@app.command("priority", cls=DevosCommand, context_settings={"ignore_unknown_options": True})
def priority(
    ctx: typer.Context,
    task: TaskArgument,
    priority: Annotated[int, typer.Argument(min=-100, max=100, help="-100 to 100; higher runs first.")],
) -> None:
    """Change the priority of a task that has not started."""
    _steered(ctx, task, "priority", {"priority": priority})


@app.command("replay", cls=DevosCommand)
def replay(
    ctx: typer.Context,
    task: TaskArgument,
    input: sub.InputOption = None,
    input_json: sub.InputJsonOption = None,
    input_file: sub.InputFileOption = None,
    reason: ReasonOption = "",
    follow: sub.FollowOption = False,
) -> None:
    """Make a new task like this one. --input changes single fields, --input-json or --input-file the whole input."""
    api = client(ctx)
    old = api.one("tasks", task)
    changed = sub.edited(api, sub.Wanted(old["type"], input or [], input_json, input_file), lambda: old["input"])
    body = {"reason": reason} | ({} if changed is None else {"input": changed})
    _submitted(ctx, api, api.post("tasks", task, "replay", body=body), follow)


@app.command("explain", cls=DevosCommand)
def explain(ctx: typer.Context, task: TaskArgument) -> None:
    """Say why a task is not running: what stands in the way, since when, until when, and what to do."""
    found = client(ctx).get("tasks", task, "explain")
    if wants_json(ctx):
        output.print_json(found)
        return
    output.styled(f"{found['task']} {found['status']}", output.COLOURS.get(found["status"], ""))
    for place, reason in enumerate(found["reasons"], start=1):
        typer.echo(f"\n{place}. {reason['code']}  {output.clean(reason['message'])}")
        holder = reason["holder"] or {}
        details = [
            ("job", reason["job"]),
            ("held by", " ".join(filter(None, (holder.get("type"), holder.get("id"), holder.get("name"))))),
            ("since", output.moment(reason["since"])),
            ("until", output.moment(reason["until"])),
            ("to clear it", f"{reason['cleared_by']}. {reason['how']}".strip() if reason["how"] else None),
        ]
        output.fields([(f"   {label}", value) for label, value in details])


@app.command("logs", cls=DevosCommand)
def logs(
    ctx: typer.Context,
    task: TaskArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the task ends.")] = False,
) -> None:
    """Print the log lines of a task, the oldest first. --follow with --json prints one JSON document a line."""
    lists.logs(ctx, ["tasks", task], follow)


@app.command("events", cls=DevosCommand)
def events(
    ctx: typer.Context, task: TaskArgument, limit: lists.LimitOption = lists.LIMIT, all_: lists.AllOption = False
) -> None:
    """List the events of a task and its jobs."""
    lists.show(ctx, ["tasks", task, "events"], lists.EVENT, {}, lists.how_many(limit, all_), "It has no events.")


@app.command("children", cls=DevosCommand)
def children(
    ctx: typer.Context, task: TaskArgument, limit: lists.LimitOption = lists.LIMIT, all_: lists.AllOption = False
) -> None:
    """List the tasks that this one started."""
    lists.show(ctx, ["tasks", task, "children"], lists.TASK, {}, lists.how_many(limit, all_), "It has no children.")


@app.command("jobs", cls=DevosCommand)
def jobs(
    ctx: typer.Context, task: TaskArgument, limit: lists.LimitOption = lists.LIMIT, all_: lists.AllOption = False
) -> None:
    """List the jobs of a task."""
    lists.show(ctx, ["tasks", task, "jobs"], lists.JOB, {}, lists.how_many(limit, all_), "It has no jobs.")


@app.command("executions", cls=DevosCommand)
def executions(
    ctx: typer.Context, task: TaskArgument, limit: lists.LimitOption = lists.LIMIT, all_: lists.AllOption = False
) -> None:
    """List the attempts of a task's jobs."""
    lists.show(ctx, ["tasks", task, "executions"], lists.EXECUTION, {}, lists.how_many(limit, all_), "None started.")


@app.command("wait", cls=DevosCommand)
def wait(
    ctx: typer.Context,
    task: TaskArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show progress and log lines meanwhile.")] = False,
    timeout: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Give up after this (exit code 124); the task goes on.")
    ] = None,
) -> None:
    """Wait until a task has ended. Exit code 0: completed, 1: failed or cancelled."""
    limit_s = values.seconds(timeout, "--timeout") if timeout else None
    found = sub.watch(client(ctx), task, wants_json(ctx), quiet=not follow, timeout_s=limit_s)
    sub.ended(found, wants_json(ctx))
