"""Cancel: the work is not wanted any more, so what is left of its task and below it is cancelled too."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tasks_app.domain.dead_letters import DeadLetterVerb
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import TASK_FINAL, DeadLetterStatus
from tasks_app.models import DeadLetterJob
from tasks_app.services.dead_letters.decide import Case, Decided, decide_one
from tasks_app.services.tasks.cancel import end, end_below
from tasks_app.services.tasks.letters import close


def cancel(principal: Principal, letter_id: UUID, reason: str = "") -> DeadLetterJob:
    """Close a dead letter and cancel what has not ended of its task and its children. Raises `NotFound`,
    `PermissionDenied`, `Conflict` when somebody decided already."""
    return decide_one(principal, DeadLetterVerb.CANCEL, letter_id, reason, work)


def work(principal: Principal, cases: Sequence[Case], reason: str) -> list[Decided]:
    close(principal, [(case.letter, case.task) for case in cases], DeadLetterStatus.CANCELLED, reason)
    unfinished = {case.task.id: case for case in cases if case.task.status not in TASK_FINAL}
    end_below(principal, sorted({case.task.id for case in cases}), reason or "Its parent task was given up.")
    for case in unfinished.values():
        if case.task.cancel_requested_at is None:
            end(principal, case.task, case.jobs, reason)
    return [Decided(case.letter.id) for case in cases]
