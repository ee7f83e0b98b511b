"""Reading what is to be submitted, and answering it the same way however often it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from pydantic import ValidationError
from rest_framework.response import Response

from tasks_app.api.base import answer, problems_of
from tasks_app.api.represent.tasks import AcceptedOut, BulkOut, as_created
from tasks_app.domain import ids, jsonsafe
from tasks_app.domain.errors import Conflict, InvalidInput, PayloadTooLarge
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import TaskStatus
from tasks_app.queries import tasks
from tasks_app.services.tasks import Submitted, TaskSpec

# A broken bulk of thousands needs no longer answer than this to be understood.
_PROBLEMS_MAX = 100


def read_specs(items: Sequence[Any]) -> list[TaskSpec]:
    """The specs of a bulk. Raises `InvalidInput` whose details name ``tasks.<index>.<field>``."""
    most = settings.DEVOS.bulk_tasks_max
    if len(items) > most:
        problem = f"{len(items)} tasks, the limit is {most}; send them in several requests"
        raise PayloadTooLarge(f"tasks: {problem}", [{"field": "tasks", "problem": problem}])
    specs: list[TaskSpec] = []
    problems: list[dict[str, str]] = []
    for index, item in enumerate(items):
        try:
            specs.append(TaskSpec.model_validate(item))
        except ValidationError as error:
            problems += problems_of(error, f"tasks.{index}")
    if problems:
        listed = "; ".join(f"{p['field']}: {p['problem']}" for p in problems[:5])
        raise InvalidInput(jsonsafe.clean_text(f"Nothing was created. {listed}"), problems[:_PROBLEMS_MAX])
    return specs


def submitted_answer(principal: Principal, spec: TaskSpec, submitted: Submitted, *, status: int) -> Response:
    """The task as it was created."""
    found = tasks.get_many(principal, [submitted.task_id])
    if not found:  # a repeated Idempotency-Key may outlive what it created
        raise Conflict(
            f"The task {ids.to_text('task', submitted.task_id)} that this Idempotency-Key created was deleted since. "
            "Use a new key for new work.",
            [{"field": "Idempotency-Key", "problem": "its task is deleted"}],
        )
    task = found[0]
    delayed = spec.seconds_from(task.created_at) > 0
    headers = {"Location": f"/api/tasks/{task.public_id}", **_replayed(submitted)}
    return answer(as_created(task, priority=spec.priority, delayed=delayed), status=status, headers=headers)


def bulk_answer(specs: Sequence[TaskSpec], submitted: Sequence[Submitted]) -> Response:
    """The ids of a bulk, in the order they were sent."""
    rows = [
        AcceptedOut(id=ids.to_text("task", one.task_id), job_id=ids.to_text("job", one.job_id), status=_first(spec))
        for spec, one in zip(specs, submitted, strict=True)
    ]
    return answer(BulkOut(results=rows), status=201, headers=_replayed(submitted[0]))


def _first(spec: TaskSpec) -> TaskStatus:
    """Where the task began, from what was asked alone: a repeated request gets the same answer."""
    return TaskStatus.WAITING if spec.run_at is not None or (spec.delay_s or 0) > 0 else TaskStatus.QUEUED


def _replayed(submitted: Submitted) -> dict[str, str]:
    return {"Idempotency-Replayed": "true"} if submitted.replayed else {}
