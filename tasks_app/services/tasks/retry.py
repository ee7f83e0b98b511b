"""Retry: the failed jobs of a task run again, with a fresh budget of attempts. History stays."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import F

from tasks_app.domain import clock
from tasks_app.domain.errors import Conflict
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import DeadLetterStatus, JobStatus, TaskStatus, sources
from tasks_app.models import Job, Task
from tasks_app.models.task import next_check
from tasks_app.services import audit, events, sql
from tasks_app.services.bells import bells, ring_after_commit
from tasks_app.services.jobs import steps
from tasks_app.services.tasks.letters import close_of_jobs
from tasks_app.services.tasks.locked import about, locked


def retry(principal: Principal, task_id: UUID, reason: str = "") -> Task:
    """Run the failed jobs of a failed task again. Raises `NotFound`, `PermissionDenied`, and `Conflict` otherwise."""
    principal.require("tasks.write")
    return sql.again_on_conflict(lambda: _retry(principal, task_id, reason))


@transaction.atomic
def _retry(principal: Principal, task_id: UUID, reason: str) -> Task:
    task, jobs = locked(principal, task_id)
    run_again(principal, [(task, failed_of(task, jobs))], reason)
    task.refresh_from_db()
    return task


def failed_of(task: Task, jobs: Sequence[Job]) -> list[Job]:
    """The jobs that a retry of this task runs again. Raises `Conflict` when there is nothing to retry."""
    failed = [job for job in jobs if job.status == JobStatus.FAILED]
    if task.status != TaskStatus.FAILED or not failed:
        hint = "Use replay to run its work again as a new task." if task.completed_at else "It is not over yet."
        raise Conflict(f"Only a failed task can be retried; this one is {task.status}. {hint}")
    return failed


def run_again(principal: Principal, work: Sequence[tuple[Task, Sequence[Job]]], reason: str) -> None:
    """Queue the failed jobs of failed tasks and close their dead letters. The caller holds the locks."""
    jobs = [job for _, failed in work for job in failed]
    Task.objects.filter(id__in=[task.id for task, _ in work], status__in=sources(TaskStatus.QUEUED)).update(
        status=TaskStatus.QUEUED,
        completed_at=None,
        error=None,
        output=None,
        check_at=next_check(),
        cancel_requested_at=None,
        cancel_requested_by="",
        cancel_reason="",
    )
    Job.objects.filter(id__in=[job.id for job in jobs], status__in=sources(JobStatus.QUEUED)).update(
        status=JobStatus.QUEUED,
        # A fresh budget: no earlier attempt counts any more.
        uncounted=F("attempt"),
        interruptions=0,
        available_at=clock.now(),
        completed_at=None,
        error=None,
        cancel_requested_at=None,
    )
    steps.ask_again([job.id for job in jobs])
    close_of_jobs(principal, work, DeadLetterStatus.RETRIED, reason)
    _record(principal, work, reason)
    ring_after_commit(job.queue_id for job in jobs)
    # Who watches a task stops when it fails: of many, none is worth the trip.
    if len(work) == 1:
        transaction.on_commit(lambda: bells().tell(str(work[0][0].id), "status"))


def _record(principal: Principal, work: Sequence[tuple[Task, Sequence[Job]]], reason: str) -> None:
    made = []
    for task, failed in work:
        made += [about(principal, task, "job.queued", job, reason=reason) for job in failed]
        made.append(about(principal, task, "task.retried", reason=reason))
    events.publish_many(made)
    audit.record_many(
        [
            audit.entry(principal, "task.retry", "task", task.public_id, reason=reason, before={"status": "failed"})
            for task, _ in work
        ]
    )
