"""The skeleton of every decision: find -> lock jobs, tasks, letters -> refuse what is decided -> do it, in one commit.

A decision takes a list: the desk decides about one, a bulk about a batch, by the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import F

from tasks_app.domain import ids
from tasks_app.domain.dead_letters import RUNS_AGAIN, DeadLetterVerb
from tasks_app.domain.errors import Conflict, DevosError, NotFound
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import DeadLetterStatus
from tasks_app.models import DeadLetterJob, Job, Task
from tasks_app.services import sql


@dataclass(frozen=True)
class Case:
    """An open dead letter with its job and task; all of them, and the task's other jobs, are locked."""

    letter: DeadLetterJob
    job: Job
    task: Task
    jobs: Sequence[Job]


@dataclass(frozen=True)
class Decided:
    """What became of one letter: ``error`` says why it was refused; ``job_id`` is the job that runs now."""

    letter_id: UUID
    error: DevosError | None = None
    job_id: UUID | None = None


Work = Callable[[Principal, Sequence[Case], str], list[Decided]]
"""Does the verb for these cases and closes their letters; one answer a case."""


def permit(principal: Principal, verb: DeadLetterVerb) -> None:
    """Raise `PermissionDenied` unless the caller may decide so."""
    principal.require("dead_letters.write")
    if verb in RUNS_AGAIN or verb == DeadLetterVerb.CANCEL:
        principal.require("tasks.write")


def decide_one(principal: Principal, verb: DeadLetterVerb, letter_id: UUID, reason: str, work: Work) -> DeadLetterJob:
    """Decide about one letter and return it. Raises `NotFound`, `PermissionDenied`, `Conflict`, what work raises."""
    permit(principal, verb)

    @transaction.atomic
    def once() -> None:
        [decided] = decide(principal, [letter_id], reason, work)
        if decided.error:
            raise decided.error

    sql.again_on_conflict(once)
    return DeadLetterJob.objects.get(id=letter_id)


def decide(principal: Principal, letter_ids: Sequence[UUID], reason: str, work: Work) -> list[Decided]:
    """Decide about letters, within a transaction; one answer a letter, in the order of their ids."""
    decided = {one: Decided(one, NotFound("dead_letter", ids.to_text("dead_letter", one))) for one in letter_ids}
    cases = []
    for case in _locked(principal, letter_ids):
        if case.letter.status == DeadLetterStatus.OPEN:
            cases.append(case)
        else:
            decided[case.letter.id] = Decided(case.letter.id, Conflict(_who(case.letter)))
    if cases:
        decided |= {one.letter_id: one for one in work(principal, cases, reason)}
    return [decided[one] for one in sorted(decided)]


def _locked(principal: Principal, letter_ids: Sequence[UUID]) -> list[Case]:
    mine = DeadLetterJob.objects.filter(id__in=letter_ids, organization_id=principal.organization_id)
    task_ids = set(mine.annotate(task_id=F("job__task_id")).values_list("task_id", flat=True))
    locked_jobs = Job.objects.select_for_update().filter(task_id__in=task_ids).defer("output", "checkpoint")
    jobs = {job.id: job for job in locked_jobs.order_by("id")}
    locked_tasks = Task.objects.select_for_update().filter(id__in=task_ids).defer("input", "output")
    tasks = {task.id: task for task in locked_tasks.order_by("id")}
    of_task: dict[UUID, list[Job]] = {}
    for job in jobs.values():
        of_task.setdefault(job.task_id, []).append(job)
    letters = mine.select_for_update(of=("self",)).order_by("id")
    return [Case(letter, job := jobs[letter.job_id], tasks[job.task_id], of_task[job.task_id]) for letter in letters]


def _who(letter: DeadLetterJob) -> str:
    why = f": {letter.reason}" if letter.reason else ""
    when = f"{letter.decided_at:%Y-%m-%d %H:%M:%S} UTC" if letter.decided_at else "earlier"
    return f"The dead letter was {letter.status} by {letter.decided_by}, {when}{why}. Nothing was changed."
