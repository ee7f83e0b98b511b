"""`devos project`: named places for tasks."""

from __future__ import annotations

from typing import Annotated

import typer

from devos.cli import lists, output
from devos.cli.commands import DevosCommand, client, noun, wants_json
from devos.cli.output import Column

app = noun()


@app.command("list", cls=DevosCommand)
def list_projects(ctx: typer.Context, limit: lists.LimitOption = lists.LIMIT, all_: lists.AllOption = False) -> None:
    """List the projects."""
    columns = [
        Column("SLUG", "slug", "id"),
        Column("NAME", "name"),
        Column("ID", "id", "id"),
        Column("DESCRIPTION", "description"),
        lists.CREATED,
    ]
    lists.show(ctx, ["projects"], columns, {}, lists.how_many(limit, all_), "There are no projects.")


@app.command("create", cls=DevosCommand)
def create(
    ctx: typer.Context,
    slug: Annotated[str, typer.Argument(help="Its short name: lower case letters, digits, - and _.")],
    name: Annotated[str | None, typer.Option("--name", help="Its full name; the slug when left out.")] = None,
    description: Annotated[str, typer.Option("--description", help="What it is for.")] = "",
) -> None:
    """Create a project."""
    body = {"slug": slug, "name": name or slug, "description": description}
    found = client(ctx).post("projects", body=body)
    if wants_json(ctx):
        output.print_json(found)
    else:
        typer.echo(f"{found['slug']} {found['id']}")
