"""How an attempt can end, and what that means for its execution, job and task.

Pure rules; `services.jobs.finish` writes what `settle` says.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tasks_app.domain.retry import RetryPolicy
from tasks_app.domain.rollup import rollup
from tasks_app.domain.states import ExecutionStatus, JobStatus, TaskStatus


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """Why an attempt failed. ``retryable`` is what the error itself said, None when it did not say."""

    code: str
    message: str
    details: Any = None
    retryable: bool | None = None
    retry_after_s: float | None = None
    traceback: str | None = None

    def as_json(self) -> dict[str, Any]:
        """What rows and doors show; empty parts are left out."""
        parts = {"code": self.code, "message": self.message, "details": self.details, "traceback": self.traceback}
        return {key: value for key, value in parts.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Succeeded:
    output: Any = None


@dataclass(frozen=True, slots=True)
class Failed:
    error: ErrorInfo
    policy: RetryPolicy | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The process died under it: counts against the budget of interruptions, not of attempts."""

    reason: str


@dataclass(frozen=True, slots=True)
class HandedBack:
    """Given back by a worker that shuts down cleanly: costs nothing."""

    checkpoint: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Parked at a wait whose row exists: it goes on when the wait is over, at the latest after ``delay_s``.

    ``blocked_by`` says for what, to whoever wonders.
    """

    delay_s: float
    blocked_by: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snoozed:
    """Ended by the action itself, to be run again from the top after ``delay_s``: costs nothing."""

    delay_s: float


Outcome = Succeeded | Failed | Cancelled | Interrupted | HandedBack | Waiting | Snoozed


@dataclass(frozen=True, slots=True)
class Attempt:
    """The facts about a running attempt that rules and guards need."""

    job_id: UUID
    execution_id: UUID
    task_id: UUID
    attempt: int
    max_attempts: int
    uncounted: int
    interruptions: int
    action_id: str
    parent_task_id: UUID | None = None

    @property
    def counted(self) -> int:
        """Attempts used up, this one included."""
        return self.attempt - self.uncounted


@dataclass(frozen=True, slots=True)
class Settlement:
    """What the rows become. ``delay_s`` and ``blocked_by`` are set for jobs that go on later; ``fingerprint`` for dead
    letters. ``note`` is a line for the task's log."""

    job: JobStatus
    execution: ExecutionStatus
    output: Any = None
    error: dict[str, Any] | None = None
    delay_s: float = 0
    blocked_by: dict[str, Any] | None = None
    uncounted: int = 0
    interruptions: int = 0
    checkpoint: dict[str, Any] | None = None
    fingerprint: str | None = None
    note: str | None = field(default=None)

    @property
    def task(self) -> TaskStatus:
        """The status of a task with this one job."""
        return rollup([self.job])


def settle(outcome: Outcome, attempt: Attempt, max_interruptions: int) -> Settlement:
    """What an outcome does to execution and job."""
    if isinstance(outcome, Succeeded):
        return Settlement(JobStatus.COMPLETED, ExecutionStatus.COMPLETED, output=outcome.output)
    if isinstance(outcome, Cancelled):
        error = {"code": "CANCELLED", "message": outcome.reason or "Cancelled."}
        return Settlement(JobStatus.CANCELLED, ExecutionStatus.CANCELLED, error=error)
    if isinstance(outcome, HandedBack):
        return Settlement(
            JobStatus.RETRYING,
            ExecutionStatus.LOST,
            error={"code": "HANDED_BACK", "message": "The worker shut down and gave the job back."},
            blocked_by={"reason": "handed_back"},
            uncounted=1,
            checkpoint=outcome.checkpoint,
        )
    if isinstance(outcome, Waiting):
        return _parked(outcome.delay_s, outcome.blocked_by)
    if isinstance(outcome, Snoozed):
        return _parked(outcome.delay_s, {"reason": "snooze", "seconds": outcome.delay_s})
    if isinstance(outcome, Interrupted):
        return _interrupted(outcome, attempt, max_interruptions)
    return _failed(outcome, attempt)


def _parked(delay_s: float, blocked_by: dict[str, Any]) -> Settlement:
    return Settlement(
        JobStatus.PENDING,
        ExecutionStatus.PAUSED,
        delay_s=max(delay_s, 0),
        blocked_by=blocked_by,
        uncounted=1,
    )


def _interrupted(outcome: Interrupted, attempt: Attempt, max_interruptions: int) -> Settlement:
    error = {"code": "WORKER_LOST", "message": outcome.reason}
    if attempt.interruptions >= max_interruptions:
        error["message"] = f"{outcome.reason} It happened {attempt.interruptions + 1} times; the job is given up."
        return Settlement(
            JobStatus.FAILED,
            ExecutionStatus.LOST,
            error=error,
            uncounted=1,
            interruptions=1,
            fingerprint=fingerprint(attempt.action_id, "WORKER_LOST", ""),
            note=error["message"],
        )
    return Settlement(
        JobStatus.RETRYING,
        ExecutionStatus.LOST,
        error=error,
        blocked_by={"reason": "interrupted"},
        uncounted=1,
        interruptions=1,
        note=f"{outcome.reason} The job runs again (interruption {attempt.interruptions + 1} of {max_interruptions}).",
    )


def _failed(outcome: Failed, attempt: Attempt) -> Settlement:
    policy, error = outcome.policy, outcome.error
    retryable = policy is not None and policy.is_retryable(error.code, error.retryable)
    said = {**error.as_json(), "retryable": retryable}
    if policy is not None and retryable and attempt.counted < attempt.max_attempts:
        delay = policy.delay_s(attempt.counted, error.retry_after_s)
        return Settlement(
            JobStatus.RETRYING,
            ExecutionStatus.FAILED,
            error=said,
            delay_s=delay,
            blocked_by={"reason": "retry", "code": error.code, "attempt": attempt.counted, "of": attempt.max_attempts},
            note=f"Attempt {attempt.counted} of {attempt.max_attempts} failed with {error.code}; again in {delay:g} s.",
        )
    return Settlement(
        JobStatus.FAILED,
        ExecutionStatus.FAILED,
        error=said,
        fingerprint=fingerprint(attempt.action_id, error.code, error.message),
        note=f"Given up after attempt {attempt.counted} of {attempt.max_attempts}: {error.code}.",
    )


_VARIABLE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[a-z]+_[0-9a-z]{26}|0x[0-9a-f]+|\d+|'[^']*'|\"[^\"]*\"")


def fingerprint(action_id: str, code: str, message: str) -> str:
    """Groups dead letters of one cause: numbers, ids and quoted parts of the message do not count."""
    normalised = _VARIABLE.sub("*", message[:1_000].lower())
    return hashlib.sha256(f"{action_id}\n{code}\n{normalised}".encode()).hexdigest()
