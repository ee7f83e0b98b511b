"""Rows as the runtime would have left them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from tasks_app.domain import ids
from tasks_app.domain.states import EXECUTION_STOPPED
from tasks_app.models import (
    ApiKey,
    DeadLetterJob,
    Event,
    Execution,
    ExecutionLog,
    Job,
    Organization,
    Project,
    Task,
    TaskLog,
    Worker,
)


@dataclass
class World:
    """One of everything."""

    project: Project
    parent: Task
    task: Task
    job: Job
    execution: Execution
    event: Event
    worker: Worker
    key: ApiKey
    letter: DeadLetterJob


def make_task(organization: Organization, *, status: str = "completed", **more: Any) -> Task:
    """A task with its job, in a state."""
    now = timezone.now()
    final = status in ("completed", "failed", "cancelled")
    job_status = {"waiting": "pending"}.get(status, status)
    values: dict[str, Any] = {
        "type": "core.echo",
        "name": "Echo",
        "input": {"value": 1},
        "output": {"value": 1} if status == "completed" else None,
        "created_by_type": "user",
        "created_by_id": "1",
        "correlation_id": "tests",
        "started_at": now - timedelta(seconds=2) if final or status == "running" else None,
        "completed_at": now if final else None,
        **more,
    }
    task = Task.objects.create(organization=organization, status=status, **values)
    running = status == "running"
    worker = make_worker() if running else None
    Job.objects.create(
        task=task,
        organization=organization,
        action_id=task.type,
        queue_id="default",
        status=job_status,
        attempt=1 if final or running else 0,
        max_attempts=3,
        completed_at=values["completed_at"],
        worker_id=worker.id if worker else None,
        lease_expires_at=now + timedelta(minutes=5) if running else None,
        blocked_by={"reason": "time"} if job_status == "pending" else None,
        progress={"current": 1, "total": 2, "percentage": 50.0} if final or running else None,
        input=task.input,
        output=task.output,
    )
    return task


def make_worker(**more: Any) -> Worker:
    values = {"hostname": "host", "pid": 7, "queues": ["default"], "concurrency": 2, "last_seen_at": timezone.now()}
    return Worker.objects.create(**{**values, **more})


def make_execution(
    task: Task, *, status: str = "completed", worker: Worker | None = None, attempt: int = 1
) -> Execution:
    now = timezone.now()
    return Execution.objects.create(
        action_id=task.type,
        action_version=1,
        organization=task.organization,
        task_id=task.id,
        job=task.jobs.get(),
        status=status,
        actor_type="user",
        actor_id="1",
        attempt=attempt,
        max_attempts=3,
        worker_id=worker.id if worker else None,
        output={"value": 1} if status == "completed" else None,
        error={"code": "X", "message": "m"} if status in EXECUTION_STOPPED else None,
        started_at=now,
        completed_at=None if status == "running" else now,
        duration_ms=None if status == "running" else 12.5,
        correlation_id=task.correlation_id,
    )


def make_letter(task: Task, **more: Any) -> DeadLetterJob:
    """An open dead letter of the task's job."""
    values: dict[str, Any] = {
        "execution_id": ids.new_id(),
        "error": {"code": "BROKEN", "message": "it broke", "traceback": "Traceback"},
        "fingerprint": "f" * 64,
        **more,
    }
    return DeadLetterJob.objects.create(
        organization=task.organization, job=task.jobs.get(), action_id=task.type, **values
    )


def make_event(task: Task, type: str = "task.created", execution: Execution | None = None, **more: Any) -> Event:
    event = Event(
        type=type,
        organization=task.organization,
        actor_type="user",
        actor_id="1",
        task_id=task.id,
        job_id=execution.job_id if execution else None,
        execution_id=execution.id if execution else None,
        correlation_id=task.correlation_id,
        **more,
    )
    event.save(force_insert=True)
    return Event.objects.get(id=event.id)


def add_log(execution: Execution, message: str, level: str = "info", at: datetime | None = None) -> None:
    ExecutionLog.objects.create(execution_id=execution.id, level=level, message=message, timestamp=at or timezone.now())


def make_world(organization: Organization) -> World:
    project = Project.objects.create(organization=organization, slug="site", name="Site")
    parent = make_task(organization)
    task = make_task(organization, project=project, parent_task=parent, resource_type="seo.website", resource_id="w1")
    worker = make_worker()
    execution = make_execution(task, worker=worker)
    add_log(execution, "hello")
    TaskLog.objects.create(task=task, level="info", message="from the platform")
    event = make_event(task, "execution.started", execution)
    key = ApiKey.objects.create(
        organization=organization,
        name="A key",
        prefix=ids.new_id().hex[:12],
        key_hash="0" * 64,
        created_by_type="user",
        created_by_id="1",
    )
    letter = make_letter(task)
    return World(project, parent, task, task.jobs.get(), execution, event, worker, key, letter)
