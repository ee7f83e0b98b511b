"""End a job that does not run: it becomes cancelled at once."""

from __future__ import annotations

from tasks_app.domain import clock
from tasks_app.domain.states import JobStatus, sources
from tasks_app.models import Job


def cancel_waiting(job: Job, reason: str) -> bool:
    """Write the end of a waiting job; False when it runs or is over. The caller holds the row's lock."""
    waiting = [status for status in sources(JobStatus.CANCELLED) if status != JobStatus.RUNNING]
    error = {"code": "CANCELLED", "message": reason or "Cancelled before it ran."}
    changed = Job.objects.filter(id=job.id, status__in=waiting).update(
        status=JobStatus.CANCELLED, completed_at=clock.now(), blocked_by=None, error=error
    )
    job.refresh_from_db()
    return changed == 1
