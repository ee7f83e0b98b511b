"""Cancel: what waits ends at once, what runs is asked to stop and is killed after its grace."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import connection, transaction

from tasks_app.domain import clock, ids
from tasks_app.domain.errors import Conflict, NotFound
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import TASK_FINAL, DeadLetterStatus, JobStatus, TaskStatus
from tasks_app.models import Job, Task
from tasks_app.services import audit, sql
from tasks_app.services.bells import bells
from tasks_app.services.tasks.ending import request, settle_task
from tasks_app.services.tasks.letters import close_of_jobs
from tasks_app.services.tasks.locked import locked
from tasks_app.services.tasks.submit import owner_of

# A commit a batch: while it is open, the jobs in it cannot be renewed, rescued or finished.
BATCH = 100
# What nobody has ended or asked to end below, deepest first; also what is under a task that has ended already.
_BELOW = """
with recursive below as (
  select id, status, cancel_requested_at, 1 as depth from tasks where parent_task_id = any(%s)
  union all
  select t.id, t.status, t.cancel_requested_at, depth + 1 from tasks t join below on t.parent_task_id = below.id)
select id from below where status <> all(%s) and cancel_requested_at is null order by depth desc, id limit %s
"""


def cancel(principal: Principal, task_id: UUID, reason: str = "") -> Task:
    """Cancel a task with its children, leaves first.

    Jobs that wait are cancelled in this call; running ones get the request and end within their grace. Cancelling again
    answers the task as it is. Raises `NotFound`, `PermissionDenied`, and `Conflict` for a completed or failed task.
    """
    principal.require("tasks.write")
    _check(Task.objects.filter(id=task_id, organization_id=principal.organization_id).first(), task_id)
    # The last batch ends with the task itself: the end of its children must not wake it.
    _end_below_but(BATCH, principal, task_id, reason)
    task = sql.again_on_conflict(lambda: _cancel(principal, task_id, reason))
    # What came below it meanwhile. Nothing can any more: see `prepare.Lookups.parent`.
    _end_below_but(0, principal, task_id, reason)
    return task


def _check(task: Task | None, task_id: UUID) -> None:
    if task is None:
        raise NotFound("task", ids.to_text("task", task_id))
    if task.status in TASK_FINAL and task.status != TaskStatus.CANCELLED:
        raise Conflict(f"The task is {task.status} already: there is nothing left to cancel.")


@transaction.atomic
def _cancel(principal: Principal, task_id: UUID, reason: str) -> Task:
    end_below(principal, [task_id], reason)
    task, jobs = locked(principal, task_id)
    _check(task, task_id)
    if not _is_over(task):
        end(principal, task, jobs, reason)
    return task


def _end_below_but(rest: int, principal: Principal, task_id: UUID, reason: str) -> None:
    while len(children := _unfinished_below([task_id], BATCH + rest)) > rest:
        batch = children[:BATCH]
        sql.again_on_conflict(lambda batch=batch: _end_all(principal, batch, reason))  # type: ignore[misc]


def end_below(principal: Principal, task_ids: Sequence[UUID], reason: str) -> None:
    """Cancel what has not ended below these tasks, leaves first. Within a transaction."""
    _end_all(principal, _unfinished_below(task_ids, None), reason)


@transaction.atomic
def _end_all(principal: Principal, task_ids: Sequence[UUID], reason: str) -> None:
    for task_id in task_ids:
        task, jobs = locked(principal, task_id)
        if not _is_over(task):
            end(principal, task, jobs, reason or "Its parent task was cancelled.")


def _unfinished_below(task_ids: Sequence[UUID], at_most: int | None) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(_BELOW, [list(task_ids), sorted(TASK_FINAL), at_most])
        return [child for (child,) in cursor.fetchall()]


def _is_over(task: Task) -> bool:
    """Whether there is nothing left to ask: it ended, or the request stands."""
    return task.status in TASK_FINAL or task.cancel_requested_at is not None


def end(principal: Principal, task: Task, jobs: Sequence[Job], reason: str) -> None:
    """Ask for the end of an unfinished task whose locks the caller holds; what failed of it is closed with it."""
    before = task.status
    task.cancel_requested_at = clock.now()
    task.cancel_requested_by = owner_of(principal)
    task.cancel_reason = reason
    task.save(update_fields=["cancel_requested_at", "cancel_requested_by", "cancel_reason"])
    for job in jobs:
        request(principal, task, job, reason)
    close_of_jobs(
        principal, [(task, [j for j in jobs if j.status == JobStatus.FAILED])], DeadLetterStatus.CANCELLED, reason
    )
    settle_task(principal, task, jobs)
    audit.record(
        principal,
        "task.cancel",
        "task",
        task.public_id,
        reason=reason,
        before={"status": before},
        after={"status": task.status},
    )
    transaction.on_commit(lambda: bells().tell(str(task.id), "status"))
