"""Durable steps of a job: what is stored is not done again."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import IntegrityError

from tasks_app.domain import jsonsafe
from tasks_app.domain.errors import ActionError
from tasks_app.models import JobStep
from tasks_app.services import sql


def stored(job_id: UUID) -> dict[int, tuple[str, Any]]:
    """The steps a job has done: ordinal -> (name, output)."""
    rows = JobStep.objects.using(sql.RUNTIME).filter(job_id=job_id).values_list("ordinal", "name", "output")
    return {ordinal: (name, output) for ordinal, name, output in rows}


def store(job_id: UUID, ordinal: int, name: str, output: Any) -> Any:
    """Keep the output of a step; returns it as JSON, which is what a later attempt will see too."""
    kept = jsonsafe.clean(output)
    try:
        JobStep.objects.using(sql.RUNTIME).create(job_id=job_id, ordinal=ordinal, name=name, output=kept)
    except IntegrityError as error:
        message = f"Step {ordinal} ({name}) was stored by another attempt of this job; this attempt is over."
        raise ActionError("ATTEMPT_SUPERSEDED", message, retryable=True) from error
    return kept


def check_name(ordinal: int, stored_name: str, name: str) -> None:
    """Raise `ActionError` NON_DETERMINISTIC when the code asks for another step than the one stored at this place."""
    if stored_name != name:
        raise ActionError(
            "NON_DETERMINISTIC",
            f"Step {ordinal} was {stored_name!r} in an earlier attempt and is {name!r} now: the code has changed its "
            "path. Submit a new task, or bring the old order of steps back.",
            retryable=False,
        )
