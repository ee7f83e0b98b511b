"""The numbers of one project: what runs, what became of the rest, what it cost and how long it took."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from pydantic import BaseModel, ConfigDict, Field

from tasks_app.domain.principal import Principal
from tasks_app.domain.states import TaskStatus
from tasks_app.models import Project
from tasks_app.queries import costs, projects
from tasks_app.queries.costs import Day, Sum
from tasks_app.queries.dashboard import read_rows
from tasks_app.queries.fields import first_id_at

# Statuses are counted on the newest tasks only: counting all of a busy project would read its whole history.
TASKS_MAX = 25_000

_NUMBERS = """
with newest as materialized (
  select id, status, created_at from tasks
  where project_id = %(project)s and id >= %(first)s and id < %(end)s order by id desc limit %(most)s),
-- Work that is older than the span and still not over.
older as materialized (
  select status from tasks
  where organization_id = %(org)s and status in ('queued', 'running', 'waiting', 'paused')
    and project_id = %(project)s and id < %(first)s limit %(most)s)
select
  (select jsonb_object_agg(status, n) from (
    select status, count(*) as n from (select status from newest union all select status from older) s
    group by status) c) as counts,
  (select coalesce(sum(e.duration_ms), 0) from newest n join jobs j on j.task_id = n.id
    join executions e on e.job_id = j.id) as duration_ms,
  (select count(*) from newest) as seen, (select min(created_at) from newest) as oldest
"""


class DashboardQuery(BaseModel):
    """Which days."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    since: Day | None = Field(None, alias="from", description="First day (UTC); 30 days up to the last one by default.")
    until: Day | None = Field(None, alias="to", description="Last day (UTC), included; today when left out.")


@dataclass(frozen=True)
class Numbers:
    """``tasks``: status -> tasks made in the span, and unfinished older ones. ``execution_ms``: time spent in attempts.

    ``exact_from`` is set when there were more than `TASKS_MAX`: only tasks made from then on are counted.
    """

    project: Project
    since: date
    until: date
    tasks: dict[TaskStatus, int]
    execution_ms: float
    cost: Sum
    exact_from: datetime | None


def read(principal: Principal, name: str, query: DashboardQuery) -> Numbers:
    """The numbers of a project by id or slug: three statements. Raises `NotFound`, `InvalidInput`."""
    principal.require("costs.read")
    project = projects.get(principal, name)
    since, until = costs.span(query.since, query.until)
    return of(project, since, until)


def of(project: Project, since: date, until: date) -> Numbers:
    """The numbers of a project from ``since`` to ``until``, both days (UTC) included."""
    found = read_rows(
        _NUMBERS,
        {
            "project": project.id,
            "org": project.organization_id,
            "first": first_id_at(datetime.combine(since, time.min, UTC)),
            "end": first_id_at(datetime.combine(until + timedelta(days=1), time.min, UTC)),
            "most": TASKS_MAX,
        },
    )[0]
    counts = found["counts"] or {}
    return Numbers(
        project=project,
        since=since,
        until=until,
        tasks={status: counts.get(status, 0) for status in TaskStatus},
        execution_ms=found["duration_ms"],
        cost=costs.of_project(project.id, project.organization_id, since, until),
        exact_from=found["oldest"] if found["seen"] >= TASKS_MAX else None,
    )
