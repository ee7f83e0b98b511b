"""Replay: the work of a task once more, as a new task that remembers where it came from."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction

from tasks_app.domain import ids
from tasks_app.domain.errors import ActionError, InvalidInput, NotFound
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import DeadLetterStatus
from tasks_app.models import Job, Task
from tasks_app.services import secrets, sql
from tasks_app.services.tasks import prepare
from tasks_app.services.tasks.letters import close_of_jobs
from tasks_app.services.tasks.spec import ResourceRef, Submitted, TaskSpec
from tasks_app.services.tasks.submit import write


def replay(principal: Principal, task_id: UUID, input: Any = None, reason: str = "") -> Submitted:
    """Create a new task like this one, with the same input or ``input``, and close the dead letters of the old one.

    A mask in ``input`` where the old input has a secret means that secret. Raises what submit raises, and `NotFound`.
    """
    return sql.again_on_conflict(lambda: _replay(principal, task_id, input, reason))


@transaction.atomic
def _replay(principal: Principal, task_id: UUID, input: Any, reason: str) -> Submitted:
    task = Task.objects.filter(id=task_id, organization_id=principal.organization_id).first()
    jobs = list(Job.objects.filter(task_id=task_id).order_by("id"))
    if task is None or not jobs:
        raise NotFound("task", ids.to_text("task", task_id))
    made = write(
        principal, [row(prepare.Lookups(principal), task, jobs[0], input)], causation_id=task.id, reason=reason
    )[0]
    close_of_jobs(principal, [(task, jobs)], DeadLetterStatus.REPLAYED, reason, replay_task_id=made.task_id)
    return made


def row(lookups: prepare.Lookups, task: Task, job: Job, input: Any = None) -> dict[str, Any]:
    """The row (see `prepare.row`) of a new task that does the work of ``job`` again. Raises what submit raises."""
    try:
        value = secrets.unseal(job.input) if input is None else secrets.kept(input, job.input)
    except ActionError as error:
        raise InvalidInput(error.message, [{"field": "input", "problem": "a secret cannot be read"}]) from error
    spec = TaskSpec(
        type=job.action_id,
        input=value,
        name=task.name,
        description=task.description,
        priority=task.priority,
        queue=job.queue_id,
        project=ids.to_text("project", task.project_id) if task.project_id else None,
        resource=ResourceRef(type=task.resource_type, id=task.resource_id or "") if task.resource_type else None,
        max_attempts=job.max_attempts,
        correlation_id=task.correlation_id,
    )
    return prepare.row(lookups, spec, replay_of=task.id)
