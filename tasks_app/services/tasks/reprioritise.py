"""Reprioritise: move a task's unfinished jobs up or down the queue."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from tasks_app.domain.errors import Conflict, InvalidInput
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import JOB_FINAL, TASK_FINAL
from tasks_app.models import Job, Task
from tasks_app.services import audit, sql
from tasks_app.services.tasks.locked import locked, publish


def reprioritise(principal: Principal, task_id: UUID, priority: int, reason: str = "") -> Task:
    """Set the priority (-100..100, higher first). Raises `InvalidInput`, `NotFound`, `Conflict` for a finished task."""
    principal.require("tasks.write")
    if isinstance(priority, bool) or not isinstance(priority, int) or not -100 <= priority <= 100:
        raise InvalidInput("priority is a whole number from -100 to 100.", [{"field": "priority", "problem": "range"}])
    return sql.again_on_conflict(lambda: _reprioritise(principal, task_id, priority, reason))


@transaction.atomic
def _reprioritise(principal: Principal, task_id: UUID, priority: int, reason: str) -> Task:
    task, _ = locked(principal, task_id)
    if task.status in TASK_FINAL:
        raise Conflict(f"The task is {task.status}: its priority no longer matters.")
    before, task.priority = task.priority, priority
    task.save(update_fields=["priority"])
    Job.objects.filter(task_id=task.id).exclude(status__in=[str(s) for s in JOB_FINAL]).update(priority=priority)
    publish(principal, task, "task.reprioritised", priority=priority)
    audit.record(
        principal,
        "task.priority",
        "task",
        task.public_id,
        reason=reason,
        before={"priority": before},
        after={"priority": priority},
    )
    return task
