"""Replay: the work of a task once more, as a new task that remembers where it came from."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tasks_app.domain import ids
from tasks_app.domain.errors import NotFound
from tasks_app.domain.principal import Principal
from tasks_app.models import Job, Task
from tasks_app.services import secrets
from tasks_app.services.tasks import prepare
from tasks_app.services.tasks.spec import ResourceRef, Submitted, TaskSpec
from tasks_app.services.tasks.submit import write


def replay(principal: Principal, task_id: UUID, input: Any = None, reason: str = "") -> Submitted:
    """Create a new task like this one, with the same input or ``input``. Raises what submit raises, and `NotFound`."""
    task = Task.objects.filter(id=task_id, organization_id=principal.organization_id).first()
    job = Job.objects.filter(task_id=task_id).order_by("id").first()
    if task is None or job is None:
        raise NotFound("task", ids.to_text("task", task_id))
    spec = TaskSpec(
        type=task.type,
        input=secrets.unseal(task.input) if input is None else input,
        name=task.name,
        description=task.description,
        priority=task.priority,
        queue=job.queue_id,
        project=ids.to_text("project", task.project_id) if task.project_id else None,
        resource=ResourceRef(type=task.resource_type, id=task.resource_id or "") if task.resource_type else None,
        max_attempts=job.max_attempts,
        correlation_id=task.correlation_id,
    )
    row = prepare.row(prepare.Lookups(principal), spec, replay_of=task.id)
    return write(principal, [row], causation_id=task.id, reason=reason)[0]
