"""Reading executions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from django.db.models import JSONField, Q, QuerySet
from django.db.models.functions import Coalesce
from pydantic import Field

from tasks_app.domain import ids
from tasks_app.domain.errors import NotFound
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import EXECUTION_STOPPED, ExecutionStatus
from tasks_app.models import Execution, Job, Task, Worker
from tasks_app.queries import jobs, tasks
from tasks_app.queries.fields import Instant, ShortText, made_between, without_heavy
from tasks_app.queries.paging import NewestFirst, Page


def stopped(statuses: Sequence[ExecutionStatus]) -> Q:
    """Executions that stopped with one of ``statuses``, in words that their indexes know."""
    lost = Q(interrupted=True) if set(statuses) == {ExecutionStatus.LOST} else Q()
    return Q(status__in=[str(status) for status in statuses], error__isnull=False) & lost


class ExecutionFilter(NewestFirst):
    noun: ClassVar[str] = "execution"

    status: list[ExecutionStatus] = Field([], max_length=8, description="One or more, repeated or separated by commas.")
    action: ShortText | None = Field(None, description="The action id, or a prefix of it with a star: `seo.*`.")
    task: ShortText | None = Field(None, description="Executions of this task.")
    job: ShortText | None = Field(None, description="Executions of this job.")
    mode: ShortText | None = Field(None, pattern="^(sync|async|stream)$")
    created_after: Instant | None = Field(None, description="Started at this instant or later.")
    created_before: Instant | None = Field(None, description="Started before this instant.")

    def narrow(self, principal: Principal) -> QuerySet[Execution]:
        principal.require("tasks.read")
        mine = {"organization_id": principal.organization_id}
        found = Execution.objects.filter(made_between(self.created_after, self.created_before), **mine)
        if self.status and EXECUTION_STOPPED.issuperset(self.status):
            found = found.filter(stopped(self.status))
        if self.action is not None and not self.action.endswith("*"):
            found = found.filter(action_id=self.action)
        if self.job is not None:
            found = found.filter(job_id=jobs.named(principal, self.job))
        if self.task is not None:
            task_id = ids.from_text("task", self.task)
            tasks.exists(principal, task_id)
            found = found.filter(of_task(task_id))
        return found

    def sieve(self) -> Q:
        tried = Q()
        # No index knows the others: running and paused ones are young, completed ones are nearly all.
        if not EXECUTION_STOPPED.issuperset(self.status):
            tried &= Q(status__in=self.status)
        if self.action is not None and self.action.endswith("*"):
            tried &= tasks.pattern("action_id", self.action)
        if self.mode is not None:
            tried &= Q(mode=self.mode)
        return tried


class ExecutionsOfTask(NewestFirst):
    """The executions of one task."""

    noun: ClassVar[str] = "execution"

    status: list[ExecutionStatus] = Field([], max_length=8, description="One or more, repeated or separated by commas.")


def of_task(task_id: UUID) -> Q:
    """Executions of a task, found through its jobs: that way an index serves."""
    return Q(job_id__in=Job.objects.filter(task_id=task_id).values("id"))


def page(principal: Principal, query: ExecutionFilter) -> Page[Execution]:
    """A page of executions, each with its worker and parent task; large inputs and outputs are left out."""
    given = Coalesce("input", "job__input", output_field=JSONField())
    found = without_heavy(query.narrow(principal).select_related("job"), "output", input=given)
    found = found.defer("input", "job__output", "job__checkpoint", "job__input")
    return _joined(query.page(found))


def of(principal: Principal, task_id: UUID, query: ExecutionsOfTask) -> Page[Execution]:
    """A page of the executions of one task."""
    return page(principal, ExecutionFilter.model_construct(**query.model_dump(), task=ids.to_text("task", task_id)))


def get(principal: Principal, execution_id: UUID) -> Execution:
    """One execution with its job, worker and parent task. Raises `NotFound`."""
    principal.require("tasks.read")
    mine = Execution.objects.filter(organization_id=principal.organization_id, id=execution_id)
    found = mine.select_related("job").defer("job__output", "job__checkpoint").first()
    if found is None:
        raise NotFound("execution", execution_id)
    return _joined(Page([found], None)).rows[0]


def _joined(page: Page[Execution]) -> Page[Execution]:
    """Set ``worker`` (a Worker or None) and ``parent_task_id`` on each row: two statements a page."""
    workers = Worker.objects.in_bulk({row.worker_id for row in page.rows if row.worker_id})
    task_ids = {row.task_id for row in page.rows if row.task_id}
    parents = dict(Task.objects.filter(id__in=task_ids).values_list("id", "parent_task_id")) if task_ids else {}
    for row in page.rows:
        row.worker = workers.get(row.worker_id) if row.worker_id else None  # type: ignore[attr-defined]
        row.parent_task_id = parents.get(row.task_id) if row.task_id else None  # type: ignore[attr-defined]
    return page
