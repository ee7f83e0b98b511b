"""What `devos action` and `devos task submit` share: the options of a new task, sending it, and showing its end."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from devos.cli import inputs, output, values
from devos.cli.errors import DONE, WORK_FAILED, ApiError, CliError

if TYPE_CHECKING:
    from devos.cli.client import Client

Row = dict[str, Any]

InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="KEY=VALUE",
        help="One field of the input, typed by the action; again for more. a.b=1 nests, key=@file reads a file.",
    ),
]
InputJsonOption = Annotated[str | None, typer.Option("--input-json", metavar="JSON", help="The input as JSON object.")]
InputFileOption = Annotated[
    str | None, typer.Option("--input-file", metavar="FILE", help="The input from a JSON file; - is stdin.")
]
FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Watch it until it ends; the exit code tells how.")]
PriorityOption = Annotated[
    int | None, typer.Option("--priority", min=-100, max=100, help="Higher runs first; the default is 0.")
]
QueueOption = Annotated[str | None, typer.Option("--queue", help="Another queue than the action's own.")]
DelayOption = Annotated[str | None, typer.Option("--delay", metavar="SPAN", help="Not before: 90, 30s, 5m, 2h, 1d.")]
NameOption = Annotated[str | None, typer.Option("--name", help="What to call the task.")]
ProjectOption = Annotated[str | None, typer.Option("--project", help="The project, by slug or id.")]
IdempotencyOption = Annotated[
    str | None,
    typer.Option("--idempotency-key", metavar="KEY", help="Sent twice within a day, the work is done once."),
]


@dataclass
class Wanted:
    """One piece of work as it was typed."""

    action: str
    pairs: list[str] = field(default_factory=list)
    input_json: str | None = None
    input_file: str | None = None
    spec: Row = field(default_factory=dict)
    idempotency_key: str | None = None

    def input(self, client: Client) -> Row:
        """The input as one object: the JSON first, single fields over it."""
        if self.input_json is not None and self.input_file is not None:
            raise CliError("Give the input once: --input-json or --input-file, not both.")
        base: Row = {}
        if self.input_json is not None:
            base = inputs.parse_object(self.input_json, "--input-json")
        elif self.input_file is not None:
            base = inputs.parse_object(inputs.read(self.input_file, "--input-file"), "--input-file")
        if not self.pairs:
            return base
        return inputs.build(self.pairs, schema_of(client, self.action), base, self.action)

    def headers(self) -> dict[str, str]:
        return {"Idempotency-Key": self.idempotency_key} if self.idempotency_key else {}


def edited(client: Client, wanted: Wanted, old: Callable[[], Row]) -> Row | None:
    """The input of a replay: None when nothing was typed, else the typed JSON or the old input, single fields over it.

    ``old`` shows secrets as a mask; sent back, a mask means the secret that was there.
    """
    whole = wanted.input_json is not None or wanted.input_file is not None
    if whole or not wanted.pairs:
        return wanted.input(client) if whole else None
    return inputs.build(wanted.pairs, schema_of(client, wanted.action), old(), wanted.action)


def spec(**given: Any) -> Row:
    """The fields of a task that were given; ``delay`` becomes seconds."""
    delay = given.pop("delay", None)
    wanted = {name: value for name, value in given.items() if value is not None}
    if delay is not None:
        wanted["delay_s"] = values.seconds(delay, "--delay")
    return wanted


def schema_of(client: Client, action: str) -> Row:
    """The JSON Schema of an action's input. An unknown action is refused with those of a similar name."""
    return describe(client, action).get("input_schema") or {}


def describe(client: Client, action: str) -> Row:
    """The action as the API shows it."""
    try:
        return client.one("actions", action)
    except ApiError as error:
        raise _with_similar(client, action, error) from error


def _with_similar(client: Client, action: str, error: ApiError) -> ApiError:
    """The error, with the names that may have been meant when it is about an unknown action."""
    if error.status != 404:
        return error
    known = [row["id"] for row in client.items("actions")]
    similar = difflib.get_close_matches(action, known, 3, cutoff=0.75) or [name for name in known if action in name][:3]
    if similar and action not in known:
        error.message += f" Did you mean {' or '.join(similar)}?"
    return error


def submit(client: Client, wanted: Wanted) -> Row:
    """Make the task, and return it as the API does."""
    return _send(client, wanted, ["tasks"], {"type": wanted.action, **wanted.spec})


def run_sync(client: Client, wanted: Wanted) -> Row:
    """Run the action within the request; the answer of the API."""
    return _send(client, wanted, ["actions", wanted.action], {"mode": "sync"})


def _send(client: Client, wanted: Wanted, path: list[str], body: Row) -> Row:
    body["input"] = wanted.input(client)
    try:
        answer: Row = client.post(*path, body=body, headers=wanted.headers())
    except ApiError as error:
        raise _with_similar(client, wanted.action, error) from error
    return answer


def watch(client: Client, task_id: str, as_json: bool, quiet: bool = False, timeout_s: float | None = None) -> Row:
    """Watch a task until its end, shown as it fits the output."""
    from devos.cli import follow

    if quiet:
        return follow.watch(client, task_id, None, timeout_s)
    with follow.viewer(as_json) as view:
        return follow.watch(client, task_id, view, timeout_s)


def submitted(task: Row, as_json: bool) -> None:
    """Say that the task is there, and how to go on."""
    if as_json:
        output.print_json(task)
        return
    typer.echo(f"{task['id']} {task['status']}")
    if output.on_terminal():
        typer.echo(f"Watch it: devos task wait {task['id']} --follow", err=True)


def ended(task: Row, as_json: bool) -> None:
    """Show how a task (or a sync execution) ended, and exit with the code for it."""
    code = DONE if task["status"] == "completed" else WORK_FAILED
    if as_json:
        output.print_json(task)
        raise typer.Exit(code)
    took = output.milliseconds(task.get("duration_ms")) or _between(task)
    line = f"{task['id']} {task['status']}" + (f" after {took}" if took else "")
    output.styled(line, output.COLOURS.get(task["status"], ""))
    if code == DONE:
        output.document("output", task.get("output"))
    else:
        typer.echo(_why(task), err=True)
    raise typer.Exit(code)


def _between(task: Row) -> str | None:
    from datetime import datetime

    if not (task.get("started_at") and task.get("completed_at")):
        return None
    took = datetime.fromisoformat(task["completed_at"]) - datetime.fromisoformat(task["started_at"])
    return output.span(took.total_seconds())


def _why(task: Row) -> str:
    noun = "task" if str(task["id"]).startswith("task_") else "execution"
    reason = output.error_line(task.get("error"))
    if task["status"] == "cancelled":
        reason = f"It was cancelled: {task.get('cancel_reason') or 'no reason was given'}."
    return f"{reason or 'No error was recorded.'}\nSee devos {noun} show {task['id']}, devos {noun} logs {task['id']}."
