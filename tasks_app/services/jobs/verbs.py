"""The verbs of a single job. A job belongs to its task, so these are the task's verbs with another handle."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from tasks_app.domain import ids
from tasks_app.domain.errors import Conflict, NotFound
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import JOB_FINAL, JobStatus
from tasks_app.models import Job
from tasks_app.services import audit, sql, tasks
from tasks_app.services.tasks.ending import request, settle_task
from tasks_app.services.tasks.locked import locked


def cancel(principal: Principal, job_id: UUID, reason: str = "") -> Job:
    """Cancel one job. Raises `NotFound`, `PermissionDenied`, `Conflict` when it is over."""
    principal.require("jobs.write")
    return sql.again_on_conflict(lambda: _cancel(principal, job_id, reason))


@transaction.atomic
def _cancel(principal: Principal, job_id: UUID, reason: str) -> Job:
    task, jobs = locked(principal, _task_of(principal, job_id))
    job = next(one for one in jobs if one.id == job_id)
    if job.status in JOB_FINAL:
        raise Conflict(f"The job is {job.status} already: there is nothing left to cancel.")
    before = job.status
    request(principal, task, job, reason)
    settle_task(principal, task, jobs)
    audit.record(principal, "job.cancel", "job", job.public_id, reason=reason, before={"status": before})
    job.refresh_from_db()
    return job


def retry(principal: Principal, job_id: UUID, reason: str = "") -> Job:
    """Run a failed job again, with its task. Raises `NotFound`, `PermissionDenied`, `Conflict` otherwise."""
    principal.require("jobs.write")
    task_id = _task_of(principal, job_id)
    job = Job.objects.get(id=job_id)
    if job.status != JobStatus.FAILED:
        raise Conflict(f"Only a failed job can be retried; this one is {job.status}.")
    tasks.retry(principal, task_id, reason)
    job.refresh_from_db()
    return job


def _task_of(principal: Principal, job_id: UUID) -> UUID:
    mine = Job.objects.filter(id=job_id, organization_id=principal.organization_id)
    task_id = mine.values_list("task_id", flat=True).first()
    if task_id is None:
        raise NotFound("job", ids.to_text("job", job_id))
    return task_id
