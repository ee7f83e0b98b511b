"""`devos cost`: what work has cost."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from devos.cli import lists
from devos.cli.commands import DevosCommand, noun
from devos.cli.output import Column

app = noun()


class By(StrEnum):
    day = "day"
    project = "project"
    action = "action"


def _key(row: dict[str, Any]) -> str:
    return row["day"] or row["action"] or row["project"] or "(no project)"


@app.command("list", cls=DevosCommand)
def list_costs(
    ctx: typer.Context,
    by: Annotated[By, typer.Option("--by", help="What is summed.")] = By.day,
    since: lists.FromOption = None,
    until: lists.ToOption = None,
    project: Annotated[str | None, typer.Option("--project", help="Only this project, by slug or id.")] = None,
    action: Annotated[str | None, typer.Option("--action", help="Only this action.")] = None,
    limit: lists.LimitOption = lists.LIMIT,
    all_: lists.AllOption = False,
) -> None:
    """Sum what was spent. Amounts are exact and never converted; failed attempts count."""
    columns = [
        Column(by.value.upper(), _key, "id"),
        Column("COST", lambda row: lists.amounts(row["cost"])),
        Column("CREDITS", lambda row: row["cost"]["credits"], "number"),
        Column("TOKENS IN", lambda row: row["cost"]["input_tokens"], "number"),
        Column("TOKENS OUT", lambda row: row["cost"]["output_tokens"], "number"),
        Column("ENTRIES", lambda row: row["cost"]["entries"], "number"),
    ]
    filters = {"group": by.value, "from": since, "to": until, "project": project, "action": action}
    lists.show(ctx, ["costs"], columns, filters, lists.how_many(limit, all_), "Nothing was spent.")
