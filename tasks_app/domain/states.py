"""The states of tasks, jobs, executions and dead letters and the only transitions between them.

Rule source: the runtime design, "States". Every guarded write asks this table for the statuses it may start from, so a
transition that is not listed cannot be written.
"""

from __future__ import annotations

from enum import StrEnum

from tasks_app.domain.errors import IllegalTransition


class TaskStatus(StrEnum):
    DRAFT = "draft"
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobStatus(StrEnum):
    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ExecutionStatus(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    LOST = "lost"


class DeadLetterStatus(StrEnum):
    OPEN = "open"
    RETRIED = "retried"
    REPLAYED = "replayed"
    DISCARDED = "discarded"
    CANCELLED = "cancelled"


T, J, E, D = TaskStatus, JobStatus, ExecutionStatus, DeadLetterStatus

TRANSITIONS: dict[type[StrEnum], dict[StrEnum, frozenset[StrEnum]]] = {
    TaskStatus: {
        T.DRAFT: frozenset({T.QUEUED, T.CANCELLED}),
        T.QUEUED: frozenset({T.RUNNING, T.WAITING, T.PAUSED, T.FAILED, T.CANCELLED}),
        T.RUNNING: frozenset({T.WAITING, T.PAUSED, T.COMPLETED, T.FAILED, T.CANCELLED}),
        T.WAITING: frozenset({T.RUNNING, T.QUEUED, T.PAUSED, T.COMPLETED, T.FAILED, T.CANCELLED}),
        T.PAUSED: frozenset({T.QUEUED, T.RUNNING, T.WAITING, T.FAILED, T.CANCELLED}),
        T.FAILED: frozenset({T.QUEUED}),
        T.COMPLETED: frozenset(),
        T.CANCELLED: frozenset(),
    },
    JobStatus: {
        J.PENDING: frozenset({J.QUEUED, J.CANCELLED, J.FAILED}),
        J.QUEUED: frozenset({J.RUNNING, J.PENDING, J.CANCELLED}),
        J.RUNNING: frozenset({J.COMPLETED, J.FAILED, J.RETRYING, J.PENDING, J.CANCELLED}),
        J.RETRYING: frozenset({J.QUEUED, J.PENDING, J.CANCELLED, J.FAILED}),
        J.FAILED: frozenset({J.QUEUED, J.PENDING}),
        J.COMPLETED: frozenset(),
        J.CANCELLED: frozenset(),
    },
    ExecutionStatus: {
        E.RUNNING: frozenset({E.COMPLETED, E.FAILED, E.CANCELLED, E.PAUSED, E.LOST}),
        **{status: frozenset() for status in E if status is not E.RUNNING},
    },
    # A decision is final: a retried job that is given up again gets a letter of its own.
    DeadLetterStatus: {
        D.OPEN: frozenset({D.RETRIED, D.REPLAYED, D.DISCARDED, D.CANCELLED}),
        **{status: frozenset() for status in D if status is not D.OPEN},
    },
}

TASK_FINAL = frozenset({T.COMPLETED, T.FAILED, T.CANCELLED})
JOB_FINAL = frozenset({J.COMPLETED, J.FAILED, J.CANCELLED})
# They say why, in `error`.
EXECUTION_STOPPED = frozenset({E.FAILED, E.CANCELLED, E.LOST})
JOB_WAITING = frozenset({J.PENDING, J.QUEUED, J.RETRYING})


def sources(target: StrEnum) -> list[str]:
    """The statuses from which ``target`` may be written, for a guarded ``WHERE status IN (...)``."""
    table = TRANSITIONS[type(target)]
    return sorted(str(source) for source, targets in table.items() if target in targets)


def check(source: StrEnum, target: StrEnum) -> None:
    """Raise `IllegalTransition` unless ``source -> target`` is in the table."""
    if target not in TRANSITIONS[type(source)][source]:
        raise IllegalTransition(f"{type(source).__name__} cannot go from {source} to {target}.")
