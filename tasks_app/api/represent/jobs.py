"""Jobs as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from tasks_app.api.represent.common import OMITTED, Json, Out, masked, omitted, public, read
from tasks_app.domain import ids
from tasks_app.domain.states import JobStatus
from tasks_app.models import Job


class JobOut(Out):
    id: str
    task_id: str
    action_id: str
    queue: str
    status: JobStatus
    priority: int
    attempt: int = Field(description="How often it was started.")
    counted_attempts: int = Field(description="Starts that used up `max_attempts`; interruptions do not.")
    max_attempts: int
    interruptions: int
    available_at: datetime = Field(description="Not started before this instant.")
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    worker_id: str | None
    lease_expires_at: datetime | None
    blocked_by: Json = Field(description="Why it waits.")
    after: list[str]
    progress: Json
    input: Json
    output: Json
    error: Json
    cancel_requested_at: datetime | None
    pause_requested_at: datetime | None
    omitted: list[str] = OMITTED


class JobList(Out):
    results: list[JobOut]
    next: str | None


def job_out(job: Job) -> JobOut:
    """A job read by `queries.jobs`."""
    return JobOut(
        id=job.public_id,
        task_id=ids.to_text("task", job.task_id),
        action_id=job.action_id,
        queue=job.queue_id,
        status=JobStatus(job.status),
        priority=job.priority,
        attempt=job.attempt,
        counted_attempts=job.counted_attempts,
        max_attempts=job.max_attempts,
        interruptions=job.interruptions,
        available_at=job.available_at,
        created_at=job.created_at,
        started_at=job.started_at,
        completed_at=job.completed_at,
        worker_id=public("worker", job.worker_id),
        lease_expires_at=job.lease_expires_at,
        blocked_by=job.blocked_by,
        after=[ids.to_text("job", one) for one in job.after],
        progress=job.progress,
        input=masked(read(job, "input")),
        output=read(job, "output"),
        error=job.error,
        cancel_requested_at=job.cancel_requested_at,
        pause_requested_at=job.pause_requested_at,
        omitted=omitted(job, "input", "output"),
    )
