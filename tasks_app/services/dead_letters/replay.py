"""Replay: the work of a dead letter once more as a new task, with the same or an edited input."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from tasks_app.domain.dead_letters import DeadLetterVerb
from tasks_app.domain.errors import DevosError
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import DeadLetterStatus
from tasks_app.models import DeadLetterJob
from tasks_app.services.dead_letters.decide import Case, Decided, decide_one
from tasks_app.services.tasks import prepare
from tasks_app.services.tasks.letters import close
from tasks_app.services.tasks.replay import row
from tasks_app.services.tasks.submit import write


def replay(principal: Principal, letter_id: UUID, input: Any = None, reason: str = "") -> DeadLetterJob:
    """Make a new task of a dead letter's work; the letter names it in ``replay_task_id``.

    ``input``: instead of the old one, by the action's schema; a mask in the place of a secret means that secret. Raises
    `NotFound`, `PermissionDenied`, `Conflict` when somebody decided already, and what submit raises.
    """
    return decide_one(principal, DeadLetterVerb.REPLAY, letter_id, reason, partial(work, input=input))


def work(principal: Principal, cases: Sequence[Case], reason: str, input: Any = None) -> list[Decided]:
    lookups = prepare.Lookups(principal)
    rows, decided = {}, []
    for case in cases:
        try:
            rows[case.letter.id] = row(lookups, case.task, case.job, input)
        except DevosError as error:
            decided.append(Decided(case.letter.id, error))
    if rows:
        write(principal, list(rows.values()), causation_id=cases[0].task.id if len(cases) == 1 else None, reason=reason)
        closed = [(case.letter, case.task) for case in cases if case.letter.id in rows]
        close(principal, closed, DeadLetterStatus.REPLAYED, reason, {key: new["task"] for key, new in rows.items()})
    return decided + [Decided(key, job_id=new["job"]) for key, new in rows.items()]
