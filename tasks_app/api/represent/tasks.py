"""Tasks as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from tasks_app.api.represent.common import (
    OMITTED,
    ActorOut,
    Json,
    Out,
    ResourceOut,
    masked,
    omitted,
    public,
    read,
    resource_out,
)
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.models import Execution, Job, Task


class StatisticsOut(Out):
    duration_ms: float | None
    attempts: int


class ResultOut(Out):
    """How it ended."""

    success: bool
    output: Json
    error: Json
    statistics: StatisticsOut


class TaskOut(Out):
    id: str
    type: str = Field(description="The action id.")
    name: str
    description: str
    status: TaskStatus
    priority: int
    project: str | None
    resource: ResourceOut | None
    input: Json
    output: Json
    error: Json
    progress: Json = Field(description="`{current, total, percentage, phase, message, at}` of its job.")
    result: ResultOut | None = Field(description="Set once the task is completed, failed or cancelled.")
    created_by: ActorOut
    parent_task: str | None
    replay_of: str | None
    correlation_id: str
    request_id: str
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    cancel_requested_at: datetime | None
    cancel_requested_by: str
    cancel_reason: str
    paused_at: datetime | None
    job_ids: list[str]
    omitted: list[str] = OMITTED


class TaskList(Out):
    results: list[TaskOut]
    next: str | None


class AcceptedOut(Out):
    """One task of a bulk."""

    id: str
    job_id: str
    status: TaskStatus


class BulkOut(Out):
    results: list[AcceptedOut] = Field(description="In the order they were sent.")


def task_out(task: Task) -> TaskOut:
    """A task read by `queries.tasks`."""
    jobs = list(task.jobs.all())
    return TaskOut(
        id=task.public_id,
        type=task.type,
        name=task.name,
        description=task.description,
        status=TaskStatus(task.status),
        priority=task.priority,
        project=public("project", task.project_id),
        resource=resource_out(task.resource_type, task.resource_id),
        input=masked(read(task, "input")),
        output=read(task, "output"),
        error=task.error,
        progress=_progress(jobs),
        result=_result(task, jobs),
        created_by=ActorOut(type=task.created_by_type, id=task.created_by_id),
        parent_task=public("task", task.parent_task_id),
        replay_of=public("task", task.replay_of_id),
        correlation_id=task.correlation_id,
        request_id=task.request_id,
        created_at=task.created_at,
        started_at=task.started_at,
        completed_at=task.completed_at,
        cancel_requested_at=task.cancel_requested_at,
        cancel_requested_by=task.cancel_requested_by,
        cancel_reason=task.cancel_reason,
        paused_at=task.paused_at,
        job_ids=[job.public_id for job in jobs],
        omitted=omitted(task, "input", "output"),
    )


def as_created(task: Task, *, priority: int, delayed: bool) -> TaskOut:
    """The task as it was when it was created.

    A repeated Idempotency-Key must get the same answer, however far the work has come in the meantime; so the first
    answer is of this form as well.
    """
    return task_out(task).model_copy(
        update={
            "status": TaskStatus.WAITING if delayed else TaskStatus.QUEUED,
            "priority": priority,
            "output": None,
            "error": None,
            "progress": None,
            "result": None,
            "started_at": None,
            "completed_at": None,
            "cancel_requested_at": None,
            "cancel_requested_by": "",
            "cancel_reason": "",
            "paused_at": None,
            "omitted": omitted(task, "input"),
        }
    )


def execution_result(execution: Execution) -> ResultOut:
    """The result of a sealed execution."""
    return ResultOut(
        success=execution.status == "completed",
        output=execution.output,
        error=execution.error,
        statistics=StatisticsOut(duration_ms=execution.duration_ms, attempts=execution.attempt),
    )


def _progress(jobs: list[Job]) -> Json:
    """That of the job that moves; of the last one that moved when none does."""
    moving = [job for job in jobs if job.status == "running"] or jobs
    return next((job.progress for job in reversed(moving) if job.progress is not None), None)


def _result(task: Task, jobs: list[Job]) -> ResultOut | None:
    if task.status not in TASK_FINAL or task.completed_at is None:
        return None
    started = task.started_at
    took = (task.completed_at - started).total_seconds() * 1000 if started is not None else None
    return ResultOut(
        success=task.status == TaskStatus.COMPLETED,
        output=read(task, "output"),
        error=task.error,
        statistics=StatisticsOut(duration_ms=took, attempts=sum(job.attempt for job in jobs)),
    )
