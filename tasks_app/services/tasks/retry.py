"""Retry: the failed jobs of a task run again, with a fresh budget of attempts. History stays."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import F

from tasks_app.domain import clock
from tasks_app.domain.errors import Conflict
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import JobStatus, TaskStatus, sources
from tasks_app.models import DeadLetterJob, Job, Task
from tasks_app.models.task import next_check
from tasks_app.services import audit, sql
from tasks_app.services.bells import bells, ring_after_commit
from tasks_app.services.jobs import steps
from tasks_app.services.tasks.locked import locked, publish
from tasks_app.services.tasks.submit import owner_of


def retry(principal: Principal, task_id: UUID, reason: str = "") -> Task:
    """Run the failed jobs of a failed task again. Raises `NotFound`, `PermissionDenied`, and `Conflict` otherwise."""
    principal.require("tasks.write")
    return sql.again_on_conflict(lambda: _retry(principal, task_id, reason))


@transaction.atomic
def _retry(principal: Principal, task_id: UUID, reason: str) -> Task:
    task, jobs = locked(principal, task_id)
    failed = [job for job in jobs if job.status == JobStatus.FAILED]
    if task.status != TaskStatus.FAILED or not failed:
        hint = "Use replay to run its work again as a new task." if task.completed_at else "It is not over yet."
        raise Conflict(f"Only a failed task can be retried; this one is {task.status}. {hint}")
    Task.objects.filter(id=task.id, status__in=sources(TaskStatus.QUEUED)).update(
        status=TaskStatus.QUEUED,
        completed_at=None,
        error=None,
        output=None,
        check_at=next_check(),
        cancel_requested_at=None,
        cancel_requested_by="",
        cancel_reason="",
    )
    for job in failed:
        _again(principal, task, job, reason)
    task.refresh_from_db()
    publish(principal, task, "task.retried", reason=reason)
    audit.record(principal, "task.retry", "task", task.public_id, reason=reason, before={"status": "failed"})
    ring_after_commit(job.queue_id for job in failed)
    transaction.on_commit(lambda: bells().tell(str(task.id), "status"))
    return task


def _again(principal: Principal, task: Task, job: Job, reason: str) -> None:
    now = clock.now()
    Job.objects.filter(id=job.id, status__in=sources(JobStatus.QUEUED)).update(
        status=JobStatus.QUEUED,
        # A fresh budget: no earlier attempt counts any more.
        uncounted=F("attempt"),
        interruptions=0,
        available_at=now,
        completed_at=None,
        error=None,
        cancel_requested_at=None,
    )
    steps.ask_again(job.id)
    DeadLetterJob.objects.filter(job_id=job.id, status="open").update(
        status="retried", decided_by=owner_of(principal), decided_at=now, reason=reason
    )
    publish(principal, task, "job.queued", job, reason=reason)
