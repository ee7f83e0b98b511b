"""Reading jobs."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.db.models import Q, QuerySet
from pydantic import Field

from tasks_app.domain import ids
from tasks_app.domain.errors import NotFound
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import JobStatus
from tasks_app.models import Job
from tasks_app.queries import tasks
from tasks_app.queries.fields import Instant, ShortText, made_between, status_is_one_of, without_heavy
from tasks_app.queries.paging import NewestFirst, Page


class JobFilter(NewestFirst):
    noun: ClassVar[str] = "job"

    status: list[JobStatus] = Field([], max_length=8, description="One or more, repeated or separated by commas.")
    task: ShortText | None = Field(None, description="Jobs of this task.")
    action: ShortText | None = Field(None, description="The action id, or a prefix of it with a star: `seo.*`.")
    queue: ShortText | None = None
    created_after: Instant | None = Field(None, description="Made at this instant or later.")
    created_before: Instant | None = Field(None, description="Made before this instant.")

    def narrow(self, principal: Principal) -> QuerySet[Job]:
        principal.require("tasks.read")
        found = Job.objects.filter(
            made_between(self.created_after, self.created_before), organization_id=principal.organization_id
        )
        if self.status and JobStatus.COMPLETED not in self.status:
            found = found.filter(_served(self.status))
        if self.task is not None:
            task_id = ids.from_text("task", self.task)
            tasks.exists(principal, task_id)
            found = found.filter(task_id=task_id)
        return found

    def sieve(self) -> Q:
        tried = Q()
        if JobStatus.COMPLETED in self.status:
            tried &= Q(status__in=self.status)
        if self.action is not None:
            tried &= tasks.pattern("action_id", self.action)
        if self.queue is not None:
            tried &= Q(queue_id=self.queue)
        return tried


class JobsOfTask(NewestFirst):
    """The jobs of one task."""

    noun: ClassVar[str] = "job"

    status: list[JobStatus] = Field([], max_length=8, description="One or more, repeated or separated by commas.")


def _served(statuses: list[JobStatus]) -> Q:
    """Each status as the partial index that serves it wants to see it."""
    condition = Q()
    for status in statuses:
        arm = Q(status_is_one_of("status", [status]))
        condition |= arm & Q(lease_expires_at__isnull=False) if status is JobStatus.RUNNING else arm
    return condition


def page(principal: Principal, query: JobFilter) -> Page[Job]:
    """A page of jobs; large inputs and outputs are left out."""
    return query.page(without_heavy(query.narrow(principal), "input", "output").defer("checkpoint"))


def of_task(principal: Principal, task_id: UUID, query: JobsOfTask) -> Page[Job]:
    """A page of the jobs of one task."""
    return page(principal, JobFilter.model_construct(**query.model_dump(), task=ids.to_text("task", task_id)))


def get(principal: Principal, job_id: UUID) -> Job:
    """One job. Raises `NotFound`."""
    principal.require("tasks.read")
    found = Job.objects.filter(organization_id=principal.organization_id, id=job_id).first()
    if found is None:
        raise NotFound("job", job_id)
    return found


def named(principal: Principal, text: str) -> UUID:
    """The id of a job that a filter names. Raises `NotFound` outside the caller's organisation."""
    job_id = ids.from_text("job", text)
    if not Job.objects.filter(id=job_id, organization_id=principal.organization_id).exists():
        raise NotFound("job", text)
    return job_id
