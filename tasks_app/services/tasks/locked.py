"""Taking hold of a task to change it: scoped to the caller, locked, jobs before task (the order everybody keeps)."""

from __future__ import annotations

from uuid import UUID

from tasks_app.domain import ids
from tasks_app.domain.errors import NotFound
from tasks_app.domain.principal import Principal
from tasks_app.models import Event, Job, Task
from tasks_app.services import events


def locked(principal: Principal, task_id: UUID) -> tuple[Task, list[Job]]:
    """The task and its jobs, locked until the transaction ends. Raises `NotFound` outside the caller's organisation."""
    if not Task.objects.filter(id=task_id, organization_id=principal.organization_id).exists():
        raise NotFound("task", ids.to_text("task", task_id))
    jobs = list(Job.objects.select_for_update().filter(task_id=task_id).order_by("id"))
    task = Task.objects.select_for_update().filter(id=task_id).first()
    if task is None:  # retention was quicker
        raise NotFound("task", ids.to_text("task", task_id))
    return task, jobs


def publish(principal: Principal, task: Task, type: str, job: Job | None = None, **data: object) -> None:
    """An event about a task or one of its jobs, caused by a verb of ``principal``."""
    about(principal, task, type, job, **data).save(force_insert=True)


def about(principal: Principal, task: Task, type: str, job: Job | None = None, **data: object) -> Event:
    """The event of `publish`, not written yet: for many at once."""
    return events.event(
        type,
        organization_id=task.organization_id,
        actor=principal.actor,
        correlation_id=task.correlation_id,
        data=data,
        causation_id=task.id,
        task_id=task.id,
        job_id=job.id if job else None,
        metadata={"request_id": principal.request_id},
    )
