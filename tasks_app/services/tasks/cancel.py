"""Cancel: what waits ends at once, what runs is asked to stop and is killed after its grace."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from tasks_app.domain import clock
from tasks_app.domain.errors import Conflict
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.models import Task
from tasks_app.services import audit, sql
from tasks_app.services.bells import bells
from tasks_app.services.tasks.ending import request, settle_task
from tasks_app.services.tasks.locked import locked
from tasks_app.services.tasks.submit import owner_of


def cancel(principal: Principal, task_id: UUID, reason: str = "") -> Task:
    """Cancel a task with its children, leaves first.

    Jobs that wait are cancelled in this call; running ones get the request and end within their grace. Cancelling again
    answers the task as it is. Raises `NotFound`, `PermissionDenied`, and `Conflict` for a completed or failed task.
    """
    principal.require("tasks.write")
    return sql.again_on_conflict(lambda: _cancel(principal, task_id, reason))


@transaction.atomic
def _cancel(principal: Principal, task_id: UUID, reason: str) -> Task:
    for child in _unfinished_children(task_id):
        _cancel(principal, child, reason or "Its parent task was cancelled.")
    task, jobs = locked(principal, task_id)
    if task.status == TaskStatus.CANCELLED or task.cancel_requested_at:
        return task
    if task.status in TASK_FINAL:
        raise Conflict(f"The task is {task.status} already: there is nothing left to cancel.")
    before = task.status
    task.cancel_requested_at = clock.now()
    task.cancel_requested_by = owner_of(principal)
    task.cancel_reason = reason
    task.save(update_fields=["cancel_requested_at", "cancel_requested_by", "cancel_reason"])
    for job in jobs:
        request(principal, task, job, reason)
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
    return task


def _unfinished_children(task_id: UUID) -> list[UUID]:
    unfinished = [status for status in TaskStatus if status not in TASK_FINAL]
    children = Task.objects.filter(parent_task_id=task_id, status__in=unfinished).order_by("id")
    return list(children.values_list("id", flat=True))
