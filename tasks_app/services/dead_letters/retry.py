"""Retry: the job of a dead letter runs again, with a fresh budget of attempts. If it is given up again, it gets a new
letter."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tasks_app.domain.dead_letters import DeadLetterVerb
from tasks_app.domain.errors import Conflict
from tasks_app.domain.principal import Principal
from tasks_app.models import DeadLetterJob
from tasks_app.services.dead_letters.decide import Case, Decided, decide_one
from tasks_app.services.tasks.retry import failed_of, run_again


def retry(principal: Principal, letter_id: UUID, reason: str = "") -> DeadLetterJob:
    """Retry the task of a dead letter. Raises `NotFound`, `PermissionDenied`, `Conflict` when it is decided already."""
    return decide_one(principal, DeadLetterVerb.RETRY, letter_id, reason, work)


def work(principal: Principal, cases: Sequence[Case], reason: str) -> list[Decided]:
    again, decided = {}, []
    for case in cases:
        try:
            again[case.task.id] = (case.task, failed_of(case.task, case.jobs))
            decided.append(Decided(case.letter.id, job_id=case.job.id))
        except Conflict as error:
            decided.append(Decided(case.letter.id, error))
    if again:
        run_again(principal, list(again.values()), reason)
    return decided
