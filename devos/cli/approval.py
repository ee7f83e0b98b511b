"""`devos approval`: what people are asked to decide."""

from __future__ import annotations

from typing import Annotated

import typer

from devos.cli import lists, output
from devos.cli.commands import DevosCommand, client, noun, wants_json
from devos.cli.output import Column

app = noun()

ApprovalArgument = Annotated[str, typer.Argument(metavar="APPROVAL", help="The id of an approval (appr_...).")]
CommentOption = Annotated[str, typer.Option("--comment", help="Why; the action and the audit get it.")]

COLUMNS = [
    lists.ID,
    lists.STATUS,
    Column("TITLE", "title"),
    Column("ROLE", "role"),
    Column("TASK", "task_id", "id"),
    Column("DECIDED BY", lambda row: row["decided_by"] or None),
    lists.CREATED,
    Column("EXPIRES", "expires_at", "time"),
]


@app.command("list", cls=DevosCommand)
def list_approvals(
    ctx: typer.Context,
    status: lists.StatusOption = None,
    task: Annotated[str | None, typer.Option("--task", help="Only approvals of this task.")] = None,
    limit: lists.LimitOption = lists.LIMIT,
    all_: lists.AllOption = False,
) -> None:
    """List approvals, the newest first; --status open for those that wait."""
    filters = {"status": status, "task": task}
    lists.show(ctx, ["approvals"], COLUMNS, filters, lists.how_many(limit, all_), "Nothing to decide.")


@app.command("show", cls=DevosCommand)
def show(ctx: typer.Context, approval: ApprovalArgument) -> None:
    """Show an approval with its details."""
    found = client(ctx).one("approvals", approval)
    if wants_json(ctx):
        output.print_json(found)
        return
    output.fields(
        [
            ("approval", found["id"]),
            ("title", found["title"]),
            ("status", found["status"]),
            ("task", found["task_id"]),
            ("who decides", f"{found['role']} with {found['permission']}"),
            ("asked", output.moment(found["created_at"])),
            ("expires", output.moment(found["expires_at"])),
            ("decided by", found["decided_by"] or None),
            ("closed", output.moment(found["decided_at"])),
            ("comment", found["comment"] or None),
        ]
    )
    output.document("details", found["details"])


@app.command("approve", cls=DevosCommand)
def approve(ctx: typer.Context, approval: ApprovalArgument, comment: CommentOption = "") -> None:
    """Let the work go on."""
    _decided(ctx, approval, "approve", comment)


@app.command("reject", cls=DevosCommand)
def reject(ctx: typer.Context, approval: ApprovalArgument, comment: CommentOption = "") -> None:
    """Say no. The action learns of it and decides what that means."""
    _decided(ctx, approval, "reject", comment)


def _decided(ctx: typer.Context, approval: str, verb: str, comment: str) -> None:
    found = client(ctx).post("approvals", approval, verb, body={"comment": comment})
    if wants_json(ctx):
        output.print_json(found)
    else:
        typer.echo(f"{found['id']} {found['status']}")
