"""Ending jobs by a verb, and bringing their task to what its jobs say. The caller holds the locks."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from tasks_app.domain import clock
from tasks_app.domain.principal import Principal
from tasks_app.domain.rollup import rollup
from tasks_app.domain.states import JOB_FINAL, TASK_FINAL, JobStatus, sources
from tasks_app.models import Execution, Job, Task
from tasks_app.services.bells import bells
from tasks_app.services.tasks.locked import publish
from tasks_app.services.waits import ends, wake


def cancel_waiting(job: Job, reason: str) -> bool:
    """Write the end of a waiting job; False when it runs or is over. The caller holds the row's lock."""
    waiting = [status for status in sources(JobStatus.CANCELLED) if status != JobStatus.RUNNING]
    error = {"code": "CANCELLED", "message": reason or "Cancelled before it ran."}
    changed = Job.objects.filter(id=job.id, status__in=waiting).update(
        status=JobStatus.CANCELLED, completed_at=clock.now(), blocked_by=None, error=error
    )
    if changed and job.attempt:
        ends.with_jobs([job.id], "default")
    job.refresh_from_db()
    return changed == 1


def request(principal: Principal, task: Task, job: Job, reason: str) -> None:
    """Cancel one locked job: at once when it waits, by request when it runs."""
    if job.status in JOB_FINAL:
        return
    if cancel_waiting(job, reason):
        publish(principal, task, "job.cancelled", job, reason=reason)
        return
    Job.objects.filter(id=job.id, status=JobStatus.RUNNING, cancel_requested_at=None).update(
        cancel_requested_at=clock.now()
    )
    publish(principal, task, "job.cancel_requested", job, reason=reason)
    running = Execution.objects.filter(job_id=job.id, attempt=job.attempt).values_list("id", flat=True)
    executions = [str(one) for one in running]
    transaction.on_commit(lambda: bells().signal(executions, "cancel"))


def settle_task(principal: Principal, task: Task, jobs: Sequence[Job]) -> None:
    """Bring the task to what its jobs say, after some of them were ended by a verb."""
    status = rollup([JobStatus(job.status) for job in jobs])
    if status == task.status or task.status not in sources(status):
        return
    task.status = status
    if status in TASK_FINAL:
        task.completed_at = clock.now()
        task.error = next((job.error for job in jobs if job.error), None)
        task.save(update_fields=["status", "completed_at", "error"])
        if (parent := task.parent_task_id) is not None:
            wake.after_commit(lambda: wake.parents_of_ended([parent]))
    else:
        task.save(update_fields=["status"])
    publish(principal, task, f"task.{status}")
