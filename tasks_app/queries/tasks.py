"""Reading tasks."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet
from pydantic import Field

from tasks_app.domain import ids
from tasks_app.domain.errors import NotFound
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import TaskStatus
from tasks_app.models import Job, Task
from tasks_app.queries import projects
from tasks_app.queries.fields import Instant, ShortText, made_between, status_is_one_of, without_heavy
from tasks_app.queries.paging import NewestFirst, Page

# What a task says about its jobs.
_OF_JOBS = Job.objects.only("id", "task_id", "status", "attempt", "uncounted", "max_attempts", "progress").order_by(
    "id"
)


class TaskFilter(NewestFirst):
    noun: ClassVar[str] = "task"

    status: list[TaskStatus] = Field([], max_length=8, description="One or more, repeated or separated by commas.")
    type: ShortText | None = Field(None, description="The action id, or a prefix of it with a star: `seo.*`.")
    project: ShortText | None = Field(None, description="Id or slug.")
    priority: int | None = Field(None, ge=-100, le=100)
    created_after: Instant | None = Field(None, description="Made at this instant or later.")
    created_before: Instant | None = Field(None, description="Made before this instant.")
    parent: ShortText | None = Field(None, description="Children of this task.")
    correlation_id: str | None = Field(None, min_length=1, max_length=128)
    q: ShortText | None = Field(None, description="Part of the name or the type, in any case.")

    def narrow(self, principal: Principal) -> QuerySet[Task]:
        principal.require("tasks.read")
        found = Task.objects.filter(
            made_between(self.created_after, self.created_before), organization_id=principal.organization_id
        )
        if self.status and TaskStatus.COMPLETED not in self.status:
            found = found.filter(status_is_one_of("status", self.status))
        if self.project is not None:
            found = found.filter(project_id=projects.id_of(principal, self.project))
        if self.parent is not None:
            found = found.filter(parent_task_id=_existing(principal, self.parent))
        if self.correlation_id is not None:
            found = found.filter(correlation_id=self.correlation_id)
        return found

    def sieve(self) -> Q:
        tried = Q()
        if TaskStatus.COMPLETED in self.status:
            tried &= Q(status__in=self.status)
        if self.type is not None:
            tried &= pattern("type", self.type)
        if self.priority is not None:
            tried &= Q(priority=self.priority)
        if self.q is not None:
            tried &= Q(name__icontains=self.q) | Q(type__icontains=self.q)
        return tried


class ChildFilter(NewestFirst):
    """The children of one task."""

    noun: ClassVar[str] = "task"

    status: list[TaskStatus] = Field([], max_length=8, description="One or more, repeated or separated by commas.")


def pattern(column: str, text: str) -> Q:
    """``column`` equals ``text``, or begins with it when it ends in a star."""
    return Q(**{f"{column}__startswith": text[:-1]}) if text.endswith("*") else Q(**{column: text})


def page(principal: Principal, query: TaskFilter) -> Page[Task]:
    """A page of tasks with their jobs; large inputs and outputs are left out."""
    return query.page(without_heavy(_with_jobs(query.narrow(principal)), "input", "output"))


def children(principal: Principal, task_id: UUID, query: ChildFilter) -> Page[Task]:
    """A page of the tasks whose parent is ``task_id``."""
    exists(principal, task_id)
    whole = TaskFilter.model_construct(**query.model_dump())
    found = whole.narrow(principal).filter(parent_task_id=task_id)
    return whole.page(without_heavy(_with_jobs(found), "input", "output"))


def get(principal: Principal, task_id: UUID) -> Task:
    """A task with its project and jobs. Raises `NotFound`."""
    principal.require("tasks.read")
    found = _with_jobs(Task.objects.filter(organization_id=principal.organization_id, id=task_id)).first()
    if found is None:
        raise NotFound("task", task_id)
    return found


def get_many(principal: Principal, task_ids: list[UUID]) -> list[Task]:
    """These tasks with their jobs, in the order asked; ids that are unknown are left out. For the answers of writes."""
    mine = Task.objects.filter(organization_id=principal.organization_id, id__in=task_ids)
    found: dict[Any, Task] = {task.id: task for task in without_heavy(_with_jobs(mine), "output")}
    return [found[task_id] for task_id in task_ids if task_id in found]


def exists(principal: Principal, task_id: UUID) -> None:
    """Raise `NotFound` unless the caller's organisation has this task."""
    principal.require("tasks.read")
    if not Task.objects.filter(organization_id=principal.organization_id, id=task_id).exists():
        raise NotFound("task", task_id)


def _existing(principal: Principal, text: str) -> UUID:
    task_id = ids.from_text("task", text)
    exists(principal, task_id)
    return task_id


def _with_jobs(tasks: QuerySet[Task]) -> QuerySet[Task]:
    return tasks.select_related("project").prefetch_related(Prefetch("jobs", queryset=_OF_JOBS))
