"""What work has cost, summed.

Sums are made when they are asked for, from an index that carries all they need: there is no second table that could
come to say something else (docs/adr/0011). The bounds on the days keep the rows read, and so the time, in hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, timedelta
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from tasks_app.domain import clock, ids
from tasks_app.domain.errors import InvalidInput
from tasks_app.domain.principal import Principal
from tasks_app.queries import projects
from tasks_app.queries.dashboard import read_rows
from tasks_app.queries.fields import ShortText
from tasks_app.queries.paging import ListQuery, Page, read_cursor, write_cursor

DAYS_DEFAULT = 30
DAYS_MAX = 366


def _iso_date(value: object) -> object:
    if isinstance(value, str) and len(value) == 10 and "1970-01-01" <= value < "2200-01-01":
        return value
    raise ValueError("give a day as text like 2026-12-01")


Day = Annotated[date, BeforeValidator(_iso_date), WithJsonSchema({"type": "string", "format": "date"})]


@dataclass(frozen=True)
class Sum:
    """The costs of one group. ``amounts``: currency -> exact sum. ``entries``: how often a cost was recorded."""

    amounts: dict[str, Decimal]
    credits: Decimal
    input_tokens: int
    output_tokens: int
    entries: int


@dataclass(frozen=True)
class Group:
    """``key`` is a day, the id of an action or the UUID of a project as text; empty for work without a project."""

    key: str
    sum: Sum


class CostFilter(ListQuery):
    model_config = ConfigDict(extra="forbid", frozen=True)
    noun: ClassVar[str] = "cost"

    group: Literal["day", "project", "action"] = Field("day", description="What is summed: days come newest first.")
    since: Day | None = Field(
        None, alias="from", description=f"First day (UTC); {DAYS_DEFAULT} days up to the last one when left out."
    )
    until: Day | None = Field(None, alias="to", description="Last day (UTC), included; today when left out.")
    project: ShortText | None = Field(None, description="Id or slug.")
    action: ShortText | None = Field(None, description="The action id.")


# {key} and {order} are ours, never a caller's.
_GROUPS = """
with sums as (
  select {key} as key, currency, sum(amount) as amount, sum(credits) as credits, sum(input_tokens) as input_tokens,
    sum(output_tokens) as output_tokens, count(*) as entries
  from execution_costs
  where organization_id = %(org)s and day between %(since)s and %(until)s
    and (%(project)s::uuid is null or project_id = %(project)s)
    and (%(action)s::text is null or action_id = %(action)s)
  group by 1, 2)
select key, trim_scale(sum(credits)) as credits, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,
  sum(entries) as entries,
  jsonb_object_agg(currency, trim_scale(amount)::text) filter (where currency <> '') as amounts
from sums where %(after)s::text is null or key {beyond} %(after)s
group by key order by key {order} limit %(limit)s
"""
_KEYS = {"day": "day::text", "project": "coalesce(project_id::text, '')", "action": "action_id", "all": "''"}


def page(principal: Principal, query: CostFilter) -> Page[Group]:
    """A page of sums, by key. Raises `NotFound` for an unknown project and `InvalidInput` for a span out of bounds."""
    principal.require("costs.read")
    since, until = span(query.since, query.until)
    project = projects.id_of(principal, query.project) if query.project is not None else None
    tag = f"{query.noun}.{query.group}"
    after = read_cursor(tag, query.cursor) if query.cursor is not None else None
    found = _groups(principal.organization_id, query.group, since, until, project, query.action, after, query.limit + 1)
    more = len(found) > query.limit
    rows = found[: query.limit]
    return Page(rows, write_cursor(tag, rows[-1].key) if more else None)


def of_project(project_id: UUID, organization_id: UUID, since: date, until: date) -> Sum:
    """Everything a project has cost from ``since`` to ``until``, both days included. One statement."""
    found = _groups(organization_id, "all", since, until, project_id, None, None, 1)
    return found[0].sum if found else Sum({}, Decimal(0), 0, 0, 0)


def span(since: date | None, until: date | None) -> tuple[date, date]:
    """The first and last day asked for, with what was left out filled in. Raises `InvalidInput`."""
    last = until or clock.now().astimezone(UTC).date()
    first = since or last - timedelta(days=DAYS_DEFAULT - 1)
    if first > last:
        raise InvalidInput("from lies after to.", [{"field": "from", "problem": "after to"}])
    if (last - first).days >= DAYS_MAX:
        problem = f"lies {DAYS_MAX} days or more before to"
        raise InvalidInput(f"from {problem}; ask for less.", [{"field": "from", "problem": problem}])
    return first, last


def _groups(
    organization_id: UUID,
    by: str,
    since: date,
    until: date,
    project: UUID | None,
    action: str | None,
    after: Any,
    limit: int,
) -> list[Group]:
    order, beyond = ("desc", "<") if by == "day" else ("asc", ">")
    statement = _GROUPS.format(key=_KEYS[by], order=order, beyond=beyond)
    parameters = {
        "org": organization_id,
        "since": since,
        "until": until,
        "project": project,
        "action": action,
        "after": after,
        "limit": limit,
    }
    return [Group(row["key"], _sum(row)) for row in read_rows(statement, parameters)]


def _sum(row: dict[str, Any]) -> Sum:
    amounts = {currency: Decimal(amount) for currency, amount in sorted((row["amounts"] or {}).items())}
    return Sum(amounts, row["credits"], int(row["input_tokens"]), int(row["output_tokens"]), int(row["entries"]))


def project_key(group: Group) -> str | None:
    """The TypeID behind the key of a group by project."""
    return ids.to_text("project", UUID(group.key)) if group.key else None
