"""Rescue: attempts whose process is gone are closed, and their jobs run again or end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from tasks_app.domain.outcomes import Attempt, Cancelled, ErrorInfo, Failed, HandedBack, Interrupted, Outcome
from tasks_app.domain.retry import RetryPolicy
from tasks_app.services import sql
from tasks_app.services.jobs.finish import Finished, finish

_COLUMNS = """
select j.id, e.id, j.task_id, j.attempt, j.max_attempts, j.uncounted, j.interruptions, j.action_id,
  t.parent_task_id, j.worker_id, j.cancel_requested_at is not null,
  extract(epoch from now() - e.started_at) * 1000
from jobs j join executions e on e.job_id = j.id and e.attempt = j.attempt join tasks t on t.id = j.task_id
"""
# A database that was just started says nothing about leases: their owners could not renew them while it was down.
_EXPIRED = (
    _COLUMNS
    + """ where j.lease_expires_at < now() and j.status = 'running'
  and pg_postmaster_start_time() < now() - %(lease_s)s * interval '1 s' order by j.lease_expires_at limit %(limit)s"""
)
_HELD = _COLUMNS + " where e.id = any(%(executions)s) and j.worker_id = %(worker)s and j.status = 'running'"

Verdict = Callable[[Attempt, bool], Outcome]


def lost(attempt: Attempt, cancel_requested: bool) -> Outcome:
    """The verdict on an attempt whose process died: cancelled when that was asked, else interrupted."""
    if cancel_requested:
        return Cancelled("Cancelled; its worker was gone.")
    return Interrupted("The worker process died while it ran.")


def not_started(attempt: Attempt, cancel_requested: bool) -> Outcome:
    """The verdict on an attempt that was claimed but never begun."""
    return Cancelled("Cancelled before it began.") if cancel_requested else HandedBack()


def timed_out(seconds: float, policy: RetryPolicy) -> Verdict:
    """The verdict on an attempt that was killed at its hard limit."""
    error = ErrorInfo("TIMEOUT", f"Ran longer than its limit of {seconds:g} s and was killed.")
    return lambda attempt, cancel_requested: Cancelled() if cancel_requested else Failed(error, policy)


def rescue_expired(lease_s: float, limit: int = 200) -> int:
    """Close attempts whose lease has run out; returns how many."""
    rows = sql.run(_EXPIRED, {"lease_s": lease_s, "limit": limit}, sql.RUNTIME)
    return _close(rows, lost)


def close_held(worker_id: UUID, executions: list[UUID], verdict: Verdict) -> int:
    """Close attempts a worker knows to be over because it saw their process end; returns how many."""
    rows = sql.run(_HELD, {"executions": executions, "worker": worker_id}, sql.RUNTIME)
    return _close(rows, verdict)


def _close(rows: list[tuple[Any, ...]], verdict: Verdict) -> int:
    closed = 0
    for row in rows:
        attempt = Attempt(*row[:9])
        worker, cancel_requested, duration_ms = row[9:]
        outcome = verdict(attempt, cancel_requested)
        # One at a time: a row that cannot be closed must not keep the others from it.
        closed += len(finish([Finished(attempt, worker, outcome, time.monotonic(), float(duration_ms or 0))]))
    return closed
