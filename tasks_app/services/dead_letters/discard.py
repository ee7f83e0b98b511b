"""Discard: nobody will do this work any more. The failure stays as it is, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tasks_app.domain.dead_letters import DeadLetterVerb
from tasks_app.domain.errors import InvalidInput
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import DeadLetterStatus
from tasks_app.models import DeadLetterJob
from tasks_app.services.dead_letters.decide import Case, Decided, decide_one
from tasks_app.services.tasks.letters import close


def discard(principal: Principal, letter_id: UUID, reason: str) -> DeadLetterJob:
    """Close a dead letter without doing anything. Raises `InvalidInput` without a reason, `NotFound`,
    `PermissionDenied`, `Conflict` when somebody decided already."""
    need_reason(reason)
    return decide_one(principal, DeadLetterVerb.DISCARD, letter_id, reason, work)


def need_reason(reason: str) -> None:
    """Raise `InvalidInput` when it says nothing."""
    if not reason.strip():
        raise InvalidInput("Say why it is discarded.", [{"field": "reason", "problem": "required"}])


def work(principal: Principal, cases: Sequence[Case], reason: str) -> list[Decided]:
    close(principal, [(case.letter, case.task) for case in cases], DeadLetterStatus.DISCARDED, reason)
    return [Decided(case.letter.id) for case in cases]
