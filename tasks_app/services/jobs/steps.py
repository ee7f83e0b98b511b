"""Durable steps of a job: what is stored is not done again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from tasks_app.domain import ids, jsonsafe
from tasks_app.domain.errors import ActionError
from tasks_app.domain.principal import Principal
from tasks_app.domain.waits import StepKind, StepState
from tasks_app.models import Job, JobStep
from tasks_app.services import sql
from tasks_app.services.tasks.spec import TaskSpec
from tasks_app.services.tasks.submit import submit


@dataclass(frozen=True, slots=True)
class Past:
    """A step or wait of an earlier attempt, or of this one."""

    id: int
    kind: StepKind
    name: str
    state: StepState
    output: Any


def stored(job_id: UUID) -> dict[int, Past]:
    """The steps and waits a job has come to, by ordinal."""
    rows = JobStep.objects.using(sql.RUNTIME).filter(job_id=job_id)
    found = rows.values_list("ordinal", "id", "kind", "name", "state", "output")
    return {
        ordinal: Past(key, StepKind(kind), name, StepState(state), output)
        for ordinal, key, kind, name, state, output in found
    }


def store(job_id: UUID, ordinal: int, name: str, output: Any) -> Any:
    """Keep the output of a step; returns it as JSON, which is what a later attempt will see too."""
    kept = jsonsafe.clean(output)
    try:
        JobStep.objects.using(sql.RUNTIME).create(job_id=job_id, ordinal=ordinal, name=name, output=kept)
    except IntegrityError as error:
        raise superseded(ordinal, name) from error
    return kept


def spawn(principal: Principal, job_id: UUID, ordinal: int, spec: TaskSpec, causation_id: UUID) -> str:
    """Create a child task and keep its id as a step, in one transaction: both, or neither. Returns the id.

    Raises what submit raises.
    """
    try:
        return sql.again_on_conflict(lambda: _spawn(principal, job_id, ordinal, spec, causation_id))
    except IntegrityError as error:
        raise superseded(ordinal, spec.type) from error


@transaction.atomic
def _spawn(principal: Principal, job_id: UUID, ordinal: int, spec: TaskSpec, causation_id: UUID) -> str:
    # Jobs before tasks, as everybody locks them: submit locks the parent task.
    Job.objects.select_for_update(no_key=True).only("id").get(id=job_id)
    task_id = ids.to_text("task", submit(principal, spec, causation_id=causation_id).task_id)
    JobStep.objects.create(job_id=job_id, ordinal=ordinal, kind=StepKind.SPAWN, name=spec.type, output=task_id)
    return task_id


def superseded(ordinal: int, name: str) -> ActionError:
    """The error of an attempt that goes on although another has taken its place."""
    message = f"Step {ordinal} ({name}) was stored by another attempt of this job; this attempt is over."
    return ActionError("ATTEMPT_SUPERSEDED", message, retryable=True)


def check(ordinal: int, past: Past, kind: StepKind, name: str) -> None:
    """Raise `ActionError` NON_DETERMINISTIC when the code asks for something else than what is stored at this place."""
    if (past.kind, past.name) != (kind, name):
        raise ActionError(
            "NON_DETERMINISTIC",
            f"Step {ordinal} was {past.kind} {past.name!r} in an earlier attempt and is {kind} {name!r} now: the code "
            "has changed its path. Submit a new task, or bring the old order of steps back.",
            retryable=False,
        )


def ask_again(job_ids: Sequence[UUID]) -> None:
    """Forget the waits without an answer that were the last thing these jobs came to: a retry by hand waits anew."""
    last = JobStep.objects.filter(job_id__in=job_ids).order_by("job_id", "-ordinal").distinct("job_id")
    unanswered = [step.pk for step in last if step.state in (StepState.TIMED_OUT, StepState.CANCELLED)]
    if unanswered:
        JobStep.objects.filter(pk__in=unanswered).delete()
