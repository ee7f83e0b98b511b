"""Reading what a bulk did about dead letters: for people, and for the bulk itself, which goes on from there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal
from uuid import UUID

from django.db.models import Count, Q

from tasks_app.domain.principal import Principal
from tasks_app.domain.states import JOB_FINAL
from tasks_app.models import DeadLetterResult, Job, Task
from tasks_app.queries import tasks
from tasks_app.queries.dashboard import read_rows
from tasks_app.queries.fields import first_id_at
from tasks_app.queries.paging import ListQuery, Page, keyset


class ResultFilter(ListQuery):
    """Results of one bulk, in the order in which it went."""

    noun: ClassVar[str] = "dead_letter_result"

    outcome: Literal["done", "refused"] | None = None


@dataclass(frozen=True)
class SoFar:
    """How far a bulk is. ``last``: the letter it decided about last; it goes through them in the order of their ids."""

    done: int
    refused: int
    last: UUID | None


# Young letters of jobs that this bulk has started: few, because it stops when there are many.
_REPEATED = """
select d.fingerprint, count(*) as number from dead_letter_jobs d
where d.organization_id = %(org)s and d.status = 'open' and d.id > %(since)s and d.created_at >= %(asked_at)s
  and exists (select 1 from dead_letter_results r where r.task_id = %(task)s and r.job_id = d.job_id
    and r.dead_letter_id <> d.id)
group by d.fingerprint order by number desc, d.fingerprint limit 1
"""


def page(principal: Principal, task_id: UUID, query: ResultFilter) -> Page[DeadLetterResult]:
    """A page of what the bulk ``task_id`` did. Raises `NotFound`."""
    principal.require("dead_letters.read")
    tasks.exists(principal, task_id)
    sieve = Q(outcome=query.outcome) if query.outcome else None
    rows = DeadLetterResult.objects.filter(task_id=task_id)
    return keyset(rows, query, field="dead_letter_id", descending=False, sieve=sieve)


def so_far(task_id: UUID) -> SoFar:
    """How far the bulk is."""
    rows = DeadLetterResult.objects.filter(task_id=task_id)
    found = rows.aggregate(all=Count("id"), done=Count("id", filter=Q(outcome="done")))
    last = rows.order_by("-dead_letter_id").values_list("dead_letter_id", flat=True).first()
    return SoFar(found["done"], found["all"] - found["done"], last)


def still_running(task_id: UUID) -> int:
    """How many jobs that the bulk has started have not ended."""
    started = DeadLetterResult.objects.filter(task_id=task_id, job_id__isnull=False).values("job_id")
    return Job.objects.filter(id__in=started).exclude(status__in=sorted(JOB_FINAL)).count()


def most_repeated(task_id: UUID) -> tuple[str, int]:
    """The fingerprint with which most jobs of the bulk failed again, and how many; ``("", 0)`` when none did."""
    task = Task.objects.only("organization_id", "created_at").get(id=task_id)
    parameters = {
        "org": task.organization_id,
        "task": task_id,
        "asked_at": task.created_at,
        "since": first_id_at(task.created_at - timedelta(hours=1)),
    }
    rows = read_rows(_REPEATED, parameters)
    return (rows[0]["fingerprint"], rows[0]["number"]) if rows else ("", 0)
