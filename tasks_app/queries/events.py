"""Reading events."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar
from uuid import UUID

from django.db.models import Q, QuerySet
from pydantic import Field

from tasks_app.domain import clock, ids
from tasks_app.domain.errors import NotFound
from tasks_app.domain.principal import Principal
from tasks_app.models import Event, Execution, Job
from tasks_app.queries import executions, tasks
from tasks_app.queries.fields import Instant, ShortText, first_id_at
from tasks_app.queries.paging import ListQuery, NewestFirst, Page, keyset

# Events of a sync execution are written by the process and the database that ran it, so their clocks agree roughly.
_SYNC_SLACK = timedelta(seconds=5)


class EventFilter(NewestFirst):
    noun: ClassVar[str] = "event"

    type: ShortText | None = Field(None, description="The event's type, or a prefix of it with a star: `task.*`.")
    task: ShortText | None = Field(None, description="Events of this task.")
    job: ShortText | None = Field(None, description="Events of this job.")
    execution: ShortText | None = Field(None, description="Events of this execution.")
    resource_type: ShortText | None = None
    resource_id: str | None = Field(None, min_length=1, max_length=300)
    correlation_id: str | None = Field(None, min_length=1, max_length=128)
    created_after: Instant | None = Field(None, description="Published at this instant or later.")
    created_before: Instant | None = Field(None, description="Published before this instant.")

    def narrow(self, principal: Principal) -> QuerySet[Event]:
        principal.require("events.read")
        found = Event.objects.filter(organization_id=principal.organization_id)
        if self.created_after is not None:
            found = found.filter(timestamp__gte=self.created_after)
        if self.created_before is not None:
            found = found.filter(timestamp__lt=self.created_before)
        if self.task is not None:
            task_id = ids.from_text("task", self.task)
            tasks.exists(principal, task_id)
            found = found.filter(task_id=task_id)
        # Only the task has an index, so what belongs to a job or an execution is found through its task.
        if self.job is not None:
            task_id, job_id = _job(principal, self.job)
            found = found.filter(task_id=task_id, job_id=job_id)
        if self.execution is not None:
            row = executions.get(principal, ids.from_text("execution", self.execution))
            found = _near(found.filter(execution_id=row.id), row)
        return found

    def sieve(self) -> Q:
        tried = Q() if self.type is None else tasks.pattern("type", self.type)
        for column in ("resource_type", "resource_id", "correlation_id"):
            if (value := getattr(self, column)) is not None:
                tried &= Q(**{column: value})
        return tried


class TimelineQuery(ListQuery):
    """What happened to one thing, in the order it was written."""

    noun: ClassVar[str] = "timeline"


def _job(principal: Principal, text: str) -> tuple[UUID, UUID]:
    job_id = ids.from_text("job", text)
    row = Job.objects.filter(id=job_id, organization_id=principal.organization_id).values_list("task_id").first()
    if row is None:
        raise NotFound("job", text)
    return row[0], job_id


def page(principal: Principal, query: EventFilter) -> Page[Event]:
    """A page of the organisation's events."""
    return query.page(query.narrow(principal))


def of_task(principal: Principal, task_id: UUID, query: TimelineQuery) -> Page[Event]:
    """The events of a task and of everything below it, oldest first."""
    tasks.exists(principal, task_id)
    found = Event.objects.filter(organization_id=principal.organization_id, task_id=task_id)
    return keyset(found, query, field="sequence", descending=False)


def of_execution(principal: Principal, execution: Execution, limit: int = 50) -> list[Event]:
    """The first events of one execution, oldest first."""
    mine = Event.objects.filter(organization_id=principal.organization_id, execution_id=execution.id)
    return list(_near(mine, execution).order_by("sequence")[:limit])


def _near(found: QuerySet[Event], execution: Execution) -> QuerySet[Event]:
    """Narrowed by what an index knows: the task, or for sync mode, which has none, the time inside the ids."""
    if execution.task_id is not None:
        return found.filter(task_id=execution.task_id)
    begin, end = execution.created_at, execution.completed_at or clock.now()
    return found.filter(id__gte=first_id_at(begin - _SYNC_SLACK), id__lt=first_id_at(end + _SYNC_SLACK))


def get(principal: Principal, event_id: UUID) -> Event:
    """One event. Raises `NotFound`."""
    principal.require("events.read")
    found = Event.objects.filter(organization_id=principal.organization_id, id=event_id).first()
    if found is None:
        raise NotFound("event", event_id)
    return found
