"""A task's status from its jobs: the one function everybody uses."""

from __future__ import annotations

from collections.abc import Sequence

from tasks_app.domain.states import JobStatus, TaskStatus

J, T = JobStatus, TaskStatus

# What a task with a single job shows. The set-based claim and finish use this table, which is `rollup([status])`.
_OF_ONE: dict[JobStatus, TaskStatus] = {
    J.PENDING: T.WAITING,
    J.QUEUED: T.QUEUED,
    J.RUNNING: T.RUNNING,
    J.RETRYING: T.WAITING,
    J.COMPLETED: T.COMPLETED,
    J.FAILED: T.FAILED,
    J.CANCELLED: T.CANCELLED,
}


def rollup(jobs: Sequence[JobStatus]) -> TaskStatus:
    """The status of a task whose jobs have these statuses (at least one).

    While anything is unfinished the task is as busy as its busiest job; then a failure outweighs a cancellation, which
    outweighs completion.
    """
    statuses = {_OF_ONE[job] for job in jobs}
    if not statuses:
        raise ValueError("a task has at least one job")
    started = bool(statuses & {T.RUNNING, T.COMPLETED, T.FAILED})
    for busy in (T.RUNNING, T.QUEUED, T.WAITING):
        if busy in statuses:
            return T.RUNNING if busy is T.QUEUED and started else busy
    for final in (T.FAILED, T.CANCELLED):
        if final in statuses:
            return final
    return T.COMPLETED
