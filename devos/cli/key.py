"""`devos key`: how programs sign in."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from devos.cli import lists, output, values
from devos.cli.commands import DevosCommand, client, noun, wants_json
from devos.cli.output import Column

app = noun()


def _status(row: dict[str, Any]) -> str:
    return "active" if row["active"] else "revoked" if row["revoked_at"] else "expired"


@app.command("list", cls=DevosCommand)
def list_keys(ctx: typer.Context, limit: lists.LimitOption = lists.LIMIT, all_: lists.AllOption = False) -> None:
    """List the API keys. The keys themselves are stored nowhere."""
    columns = [
        Column("ID", "id", "id"),
        Column("STATUS", _status, "status"),
        Column("NAME", "name"),
        Column("PREFIX", "prefix"),
        Column("ROLE", "role"),
        Column("SCOPES", "scopes"),
        Column("EXPIRES", "expires_at", "time"),
        Column("LAST USED", "last_used_at", "time"),
        lists.CREATED,
    ]
    lists.show(ctx, ["keys"], columns, {}, lists.how_many(limit, all_), "There are no keys.")


@app.command("create", cls=DevosCommand)
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="What uses it, so that you know later.")],
    role: Annotated[str, typer.Option("--role", help="viewer, operator or admin.")] = "operator",
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="Narrow it: tasks.*, seo.scan; again for more.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="An ISO 8601 moment, or a time span like 90d.")
    ] = None,
) -> None:
    """Create an API key and print it. This is the only time it can be seen."""
    body: dict[str, Any] = {"name": name, "role": role, "scopes": scope or []}
    if expires:
        body["expires_at"] = values.moment(expires, "--expires")
    found = client(ctx).post("keys", body=body)
    if wants_json(ctx):
        output.print_json(found)
        return
    typer.echo(found["key"])
    typer.echo(f"Keep it now: it is not shown again. Revoke it with: devos key revoke {found['id']}", err=True)


@app.command("revoke", cls=DevosCommand)
def revoke(ctx: typer.Context, key: Annotated[str, typer.Argument(metavar="KEY", help="Its id (key_...).")]) -> None:
    """Make a key useless, at once and for good."""
    found = client(ctx).delete("keys", key)
    if wants_json(ctx):
        output.print_json(found)
    else:
        typer.echo(f"{found['id']} {_status(found)}")
