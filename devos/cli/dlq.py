"""`devos dlq`: dead letters, the jobs that were given up."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from devos.cli import lists, output
from devos.cli import submission as sub
from devos.cli.commands import DevosCommand, client, noun, wants_json
from devos.cli.errors import CliError
from devos.cli.output import Column

app = noun()

LetterArgument = Annotated[str, typer.Argument(metavar="LETTER", help="The id of a dead letter (dlq_...).")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; it is kept with the letter and in the audit.")]
ActionOption = Annotated[str | None, typer.Option("--action", help="Only this action, or seo.* for more.")]
CodeOption = Annotated[str | None, typer.Option("--code", help="Only errors with this code.")]
FingerprintOption = Annotated[str | None, typer.Option("--fingerprint", help="Only the group with this fingerprint.")]
TaskOption = Annotated[str | None, typer.Option("--task", help="Only jobs of this task.")]
JobOption = Annotated[str | None, typer.Option("--job", help="Only this job.")]

VERBS = ("retry", "replay", "discard", "cancel")


def _message(row: dict[str, Any]) -> str | None:
    return (row.get("error") or {}).get("message")


LETTER = [
    lists.ID,
    lists.STATUS,
    Column("ACTION", "action_id"),
    Column("CODE", "code"),
    Column("MESSAGE", _message),
    Column("DECIDED BY", "decided_by"),
    Column("GIVEN UP", "created_at", "time"),
]
GROUP = [
    Column("COUNT", lambda row: f"{row['count']}{'' if row['count_exact'] else '+'}", "number"),
    Column("ACTION", "action_id"),
    Column("CODE", "code"),
    Column("MESSAGE", _message),
    Column("FIRST", "first_seen_at", "time"),
    Column("LAST", "last_seen_at", "time"),
    Column("FINGERPRINT", "fingerprint", "id"),
]
RESULT = [
    Column("LETTER", "dead_letter_id", "id"),
    Column("OUTCOME", "outcome", "status"),
    Column("CODE", "code"),
    Column("MESSAGE", "message"),
    Column("JOB", "job_id", "id"),
]


@app.command("list", cls=DevosCommand)
def list_letters(
    ctx: typer.Context,
    status: lists.StatusOption = None,
    action: ActionOption = None,
    code: CodeOption = None,
    fingerprint: FingerprintOption = None,
    task: TaskOption = None,
    job: JobOption = None,
    after: lists.AfterOption = None,
    before: lists.BeforeOption = None,
    oldest_first: lists.OldestOption = False,
    limit: lists.LimitOption = lists.LIMIT,
    all_: lists.AllOption = False,
) -> None:
    """List dead letters, the newest first."""
    filters = {"status": status, "action": action, "code": code, "fingerprint": fingerprint, "task": task, "job": job}
    filters |= lists.between(after, before, oldest_first)
    lists.show(ctx, ["dead-letters"], LETTER, filters, lists.how_many(limit, all_), "No dead letters match.")


@app.command("groups", cls=DevosCommand)
def groups(
    ctx: typer.Context,
    status: Annotated[str | None, typer.Option("--status", help="Of the letters that are counted.")] = None,
    action: ActionOption = None,
) -> None:
    """Dead letters by their cause, the largest group first. Open ones, unless --status says otherwise."""
    found = client(ctx).items("dead-letters", "groups", status=status, action=action)
    rows = sorted(found, key=lambda row: (-row["count"], row["fingerprint"]))
    if wants_json(ctx):
        output.print_json(rows)
    else:
        output.table(rows, GROUP, "There are no dead letters.")


@app.command("show", cls=DevosCommand)
def show(ctx: typer.Context, letter: LetterArgument) -> None:
    """Show a dead letter with its error and what was decided."""
    found = client(ctx).one("dead-letters", letter)
    if wants_json(ctx):
        output.print_json(found)
        return
    error = found.get("error") or {}
    output.fields(
        [
            ("letter", found["id"]),
            ("status", found["status"]),
            ("action", found["action_id"]),
            ("error", output.error_line(error)),
            ("given up", output.moment(found["created_at"])),
            ("task", found["task_id"]),
            ("job", found["job_id"]),
            ("last execution", found["execution_id"]),
            ("fingerprint", found["fingerprint"]),
            ("decided by", found["decided_by"]),
            ("decided", output.moment(found["decided_at"])),
            ("reason", found["reason"]),
            ("replayed as", found["replay_task"]),
        ]
    )
    output.document("details", error.get("details"))
    if error.get("traceback"):
        typer.echo(f"traceback:\n{output.clean(error['traceback'])}")
    if output.on_terminal():
        typer.echo(f"Its log: devos execution logs {found['execution_id']}", err=True)


def _decided(ctx: typer.Context, letter: str, verb: str, body: dict[str, Any]) -> None:
    found = client(ctx).post("dead-letters", letter, verb, body=body)
    if wants_json(ctx):
        output.print_json(found)
    else:
        typer.echo(" ".join(filter(None, [found["id"], found["status"], found["replay_task"]])))


@app.command("retry", cls=DevosCommand)
def retry(ctx: typer.Context, letter: LetterArgument, reason: ReasonOption = "") -> None:
    """Run the job again, with a fresh budget of attempts."""
    _decided(ctx, letter, "retry", {"reason": reason})


@app.command("replay", cls=DevosCommand)
def replay(
    ctx: typer.Context,
    letter: LetterArgument,
    input: sub.InputOption = None,
    input_json: sub.InputJsonOption = None,
    input_file: sub.InputFileOption = None,
    reason: ReasonOption = "",
) -> None:
    """Make a new task of the job's work. --input changes single fields, --input-json or --input-file all of it."""
    api = client(ctx)
    old = api.one("dead-letters", letter)
    wanted = sub.Wanted(old["action_id"], input or [], input_json, input_file)
    changed = sub.edited(api, wanted, lambda: api.one("jobs", old["job_id"])["input"])
    body = {"reason": reason} | ({} if changed is None else {"input": changed})
    _decided(ctx, letter, "replay", body)


@app.command("discard", cls=DevosCommand)
def discard(ctx: typer.Context, letter: LetterArgument, reason: ReasonOption = "") -> None:
    """Close a dead letter; nobody will do the work. Needs --reason."""
    _decided(ctx, letter, "discard", {"reason": reason})


@app.command("cancel", cls=DevosCommand)
def cancel(ctx: typer.Context, letter: LetterArgument, reason: ReasonOption = "") -> None:
    """Close a dead letter, and cancel what has not ended of its task and its children."""
    _decided(ctx, letter, "cancel", {"reason": reason})


@app.command("bulk", cls=DevosCommand)
def bulk(
    ctx: typer.Context,
    verb: Annotated[str, typer.Argument(metavar="VERB", help="retry, replay, discard or cancel.")],
    letters: Annotated[list[str] | None, typer.Argument(metavar="[LETTER]...", help="These; or give a filter.")] = None,
    every: Annotated[bool, typer.Option("--every", help="Every open dead letter, without a filter.")] = False,
    action: ActionOption = None,
    code: CodeOption = None,
    fingerprint: FingerprintOption = None,
    task: TaskOption = None,
    after: lists.AfterOption = None,
    before: lists.BeforeOption = None,
    reason: ReasonOption = "",
    canary: Annotated[int | None, typer.Option(min=1, help="First so many; the rest when they went well.")] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="N/UNIT", help="No faster than 5/s, 30/m or 100/h.")
    ] = None,
    stop_after: Annotated[int | None, typer.Option(min=0, help="Stop when more fail again in one way.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many are meant.")] = False,
    follow: sub.FollowOption = False,
    idempotency_key: sub.IdempotencyOption = None,
) -> None:
    """Decide about many dead letters by a task: the ones named, or all open ones that match."""
    if verb not in VERBS:
        raise CliError(f"There is no verb {verb!r}: it is one of {', '.join(VERBS)}.")
    filters = {"action": action, "code": code, "fingerprint": fingerprint, "task": task}
    filters |= lists.between(after, before, False)
    chosen = {name: value for name, value in filters.items() if value is not None}
    if bool(letters) + bool(chosen) + every != 1:
        raise CliError("Say which dead letters: name some, or give a filter like --code, or --every.")
    options: dict[str, Any] = {"reason": reason or None, "canary": canary, "rate": rate, "stop_after": stop_after}
    body: dict[str, Any] = {"verb": verb, **({"ids": letters} if letters else {"filter": chosen})}
    body |= {name: value for name, value in options.items() if value is not None}
    api = client(ctx)
    if dry_run:
        _counted(ctx, verb, api.post("dead-letters", "bulk", body={**body, "dry_run": True}))
        return
    headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
    made = api.post("dead-letters", "bulk", body=body, headers=headers)
    if follow:
        sub.ended(sub.watch(api, made["id"], wants_json(ctx)), wants_json(ctx))
    sub.submitted(made, wants_json(ctx))


def _counted(ctx: typer.Context, verb: str, found: dict[str, Any]) -> None:
    if wants_json(ctx):
        output.print_json(found)
    else:
        more = "" if found["exact"] else "more than "
        typer.echo(f"{verb} would be done to {more}{found['count']} dead letters")


@app.command("results", cls=DevosCommand)
def results(
    ctx: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The id of a bulk's task (task_...).")],
    outcome: Annotated[str | None, typer.Option(help="Only done, or only refused.")] = None,
    limit: lists.LimitOption = lists.LIMIT,
    all_: lists.AllOption = False,
) -> None:
    """List what a bulk did about each dead letter, in the order in which it went."""
    path = ["dead-letters", "bulk", task, "results"]
    lists.show(ctx, path, RESULT, {"outcome": outcome}, lists.how_many(limit, all_), "It has done nothing yet.")
