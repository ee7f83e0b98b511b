"""`devos action`: run an action, list and show them."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from devos.cli import inputs, output
from devos.cli import submission as sub
from devos.cli.commands import DevosCommand, client, noun, wants_json
from devos.cli.errors import CliError

_ACTION = "devos.cli.action"


class ActionGroup(TyperGroup):
    """`devos action <id>` is `devos action run <id>`: what is no command here is the id of an action."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.commands and not args[0].startswith("-"):
            args = ["run", *args]
        if args[0] == "run":
            ctx.meta[_ACTION] = next((arg for arg in args[1:] if not arg.startswith("-")), None)
        return super().resolve_command(ctx, args)


class RunCommand(DevosCommand):
    """Its help ends with the input of the action that is named, when the platform can be asked."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        super().format_epilog(ctx, formatter)
        action = ctx.meta.get(_ACTION)
        if not action:
            return
        try:
            found = sub.describe(client(ctx), action)
        except CliError:
            return
        rows = [(f"{name}={kind}", note) for name, kind, note in inputs.describe(found.get("input_schema") or {})]
        with formatter.section(f"Input of {action}"):
            formatter.write_dl(rows or [("(none)", "This action takes no input.")])


app = noun(cls=ActionGroup)


@app.command("run", cls=RunCommand)
def run(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="The id of the action, like seo.website.scan.")],
    input: sub.InputOption = None,
    input_json: sub.InputJsonOption = None,
    input_file: sub.InputFileOption = None,
    follow: sub.FollowOption = False,
    mode: Annotated[str, typer.Option(help="sync: run it in the request and print the result; async: queue it.")] = (
        "async"
    ),
    priority: sub.PriorityOption = None,
    queue: sub.QueueOption = None,
    delay: sub.DelayOption = None,
    name: sub.NameOption = None,
    project: sub.ProjectOption = None,
    idempotency_key: sub.IdempotencyOption = None,
) -> None:
    """Run an action. `devos action ACTION` does the same. With ACTION and --help its input is listed."""
    spec = sub.spec(priority=priority, queue=queue, delay=delay, name=name, project=project)
    wanted = sub.Wanted(action, input or [], input_json, input_file, spec, idempotency_key)
    if mode not in ("sync", "async"):
        raise CliError(f"--mode {mode!r} must be sync or async.")
    if mode == "sync":
        _only_for_async(follow=follow or None, idempotency_key=idempotency_key, **spec)
        sub.ended(sub.run_sync(client(ctx), wanted), wants_json(ctx))
    api = client(ctx)
    task = sub.submit(api, wanted)
    if not follow:
        sub.submitted(task, wants_json(ctx))
        return
    sub.ended(sub.watch(api, task["id"], wants_json(ctx)), wants_json(ctx))


def _only_for_async(**given: Any) -> None:
    wrong = [f"--{name.replace('_s', '').replace('_', '-')}" for name, value in given.items() if value is not None]
    if wrong:
        raise CliError(f"{', '.join(wrong)} make no sense with --mode sync, which runs at once and waits for the end.")


@app.command("list", cls=DevosCommand)
def list_actions(
    ctx: typer.Context,
    search: Annotated[str | None, typer.Argument(help="Only actions whose id or title contains this.")] = None,
) -> None:
    """List the actions that are installed."""
    rows = list(client(ctx).items("actions"))
    if search:
        text = search.lower()
        rows = [row for row in rows if text in row["id"].lower() or text in row["title"].lower()]
    if wants_json(ctx):
        output.print_json(rows)
        return
    columns = [
        output.Column("ACTION", "id", "id"),
        output.Column("TITLE", "title"),
        output.Column("QUEUE", "queue"),
        output.Column("MODES", lambda row: ", ".join(sorted(row.get("modes") or []))),
        output.Column("PLUGIN", "plugin"),
    ]
    output.table(rows, columns, "No actions match." if search else "No actions are installed.")


@app.command("show", cls=DevosCommand)
def show(ctx: typer.Context, action: Annotated[str, typer.Argument(metavar="ACTION")]) -> None:
    """Show an action: what it does, its options and its input."""
    found = sub.describe(client(ctx), action)
    if wants_json(ctx):
        output.print_json(found)
        return
    retry = found.get("retry") or {}
    output.fields(
        [
            ("action", f"{found['id']} (version {found.get('version', 1)})"),
            ("title", found.get("title")),
            ("plugin", found.get("plugin")),
            ("queue", found.get("queue")),
            ("modes", sorted(found.get("modes") or [])),
            ("permission", found.get("permission")),
            ("dangerous", "yes" if found.get("dangerous") else None),
            ("time limit", output.span(found["timeout_s"]) if found.get("timeout_s") else None),
            ("attempts", f"{retry['max_attempts']} ({retry.get('strategy')})" if "max_attempts" in retry else None),
            ("pause", "can be paused" if found.get("supports_pause") else None),
        ]
    )
    if found.get("description"):
        typer.echo(f"\n{output.clean(found['description'])}")
    columns = [output.Column("INPUT", "name", "id"), output.Column("TYPE", "type"), output.Column("NOTE", "note")]
    described = inputs.describe(found.get("input_schema") or {})
    rows = [{"name": name, "type": kind, "note": note} for name, kind, note in described]
    typer.echo("")
    output.table(rows, columns, "It takes no input.")
