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


@app.command("show", cls=DevosCommand)
def show(
    ctx: typer.Context,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="Its slug or id.")],
    since: lists.FromOption = None,
    until: lists.ToOption = None,
) -> None:
    """Show what a project runs, what became of its tasks, what they cost and how long they took."""
    found = client(ctx).get("projects", project, "dashboard", **{"from": since, "to": until})
    if wants_json(ctx):
        output.print_json(found)
        return
    output.fields(
        [
            ("project", found["project"]),
            ("days", f"{found['first_day']} to {found['last_day']}"),
            *((name, found[name]) for name in ("running", "queued", "waiting", "completed", "failed", "cancelled")),
            ("counted from", output.moment(found["exact_from"])),
            ("execution time", output.milliseconds(found["execution_ms"])),
            ("cost", lists.amounts(found["cost"])),
            ("tokens", lists.tokens(found["cost"])),
        ]
    )
