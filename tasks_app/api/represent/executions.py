"""Executions as the API shows them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from tasks_app.api.represent.common import OMITTED, ActorOut, Json, LogOut, Out, log_out, masked, omitted, public, read
from tasks_app.api.represent.events import EventOut, event_out
from tasks_app.api.represent.tasks import ResultOut, execution_result
from tasks_app.domain.states import ExecutionStatus
from tasks_app.models import Event, Execution, Worker
from tasks_app.queries.logs import Line


class WorkerRef(Out):
    id: str
    hostname: str
    pid: int


class ExecutionOut(Out):
    id: str
    action_id: str
    action_version: int | None
    status: ExecutionStatus
    mode: str
    attempt: int
    max_attempts: int
    worker: WorkerRef | None
    triggered_by: ActorOut
    task_id: str | None
    parent_task: str | None
    job_id: str | None
    input: Json
    output: Json
    error: Json
    progress: Json
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    duration_ms: float | None
    correlation_id: str
    interrupted: bool = Field(description="Its worker went away; the attempt was not counted.")
    steps_reused: int
    log_lines_dropped: int
    omitted: list[str] = OMITTED


class ExecutionDetail(ExecutionOut):
    logs: list[LogOut] = Field(description="The last 50 lines; /logs has all.")
    events: list[EventOut] = Field(description="The first 50.")


class SyncOut(ExecutionOut):
    """An execution that ran inside the request."""

    result: ResultOut


class ExecutionList(Out):
    results: list[ExecutionOut]
    next: str | None


def execution_out(row: Execution) -> ExecutionOut:
    """An execution read by `queries.executions`."""
    return ExecutionOut(**_values(row))


def execution_detail(row: Execution, lines: Sequence[Line], events: Sequence[Event]) -> ExecutionDetail:
    return ExecutionDetail(
        **_values(row), logs=[log_out(line) for line in lines], events=[event_out(event) for event in events]
    )


def sync_out(row: Execution) -> SyncOut:
    return SyncOut(**_values(row), result=execution_result(row))


def _values(row: Execution) -> dict[str, Any]:
    worker: Worker | None = getattr(row, "worker", None)
    given = row.input_light if hasattr(row, "input_light") else row.effective_input
    return {
        "id": row.public_id,
        "action_id": row.action_id,
        "action_version": row.action_version,
        "status": ExecutionStatus(row.status),
        "mode": row.mode,
        "attempt": row.attempt,
        "max_attempts": row.max_attempts,
        "worker": WorkerRef(id=worker.public_id, hostname=worker.hostname, pid=worker.pid) if worker else None,
        "triggered_by": ActorOut(type=row.actor_type, id=row.actor_id),
        "task_id": public("task", row.task_id),
        "parent_task": public("task", getattr(row, "parent_task_id", None)),
        "job_id": public("job", row.job_id),
        "input": masked(given),
        "output": read(row, "output"),
        "error": row.error,
        "progress": row.progress,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "completed_at": row.completed_at,
        "duration_ms": row.duration_ms,
        "correlation_id": row.correlation_id,
        "interrupted": row.interrupted,
        "steps_reused": row.steps_reused,
        "log_lines_dropped": row.log_lines_dropped,
        "omitted": omitted(row, "input", "output"),
    }
