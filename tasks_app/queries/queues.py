"""Reading queues: what waits, what runs, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.db import connection
from django.db.models import QuerySet

from tasks_app.domain.errors import NotFound
from tasks_app.domain.principal import Principal
from tasks_app.models import Queue
from tasks_app.queries import workers
from tasks_app.queries.paging import Count, ListQuery, Page, keyset

# Nobody needs to tell 10,000 waiting jobs from 12,000; counting them all would read every row.
DEPTH_MAX = 10_000

# The oldest is looked for in each priority: 201 probes of the claim's index, however long the queue is.
_LOADS = """
select q.name,
  (select count(*) from (select 1 from jobs where queue = q.name and status = 'queued' and organization_id = %(org)s
     limit %(most)s) x),
  (select count(*) from (select 1 from jobs where queue = q.name and status = 'running'
     and lease_expires_at is not null and organization_id = %(org)s limit %(most)s) x),
  (select count(*) from (select 1 from jobs where queue = q.name and status in ('pending', 'retrying')
     and organization_id = %(org)s limit %(most)s) x),
  (select count(*) from workers where stopped_at is null and last_seen_at >= %(seen)s and q.name = any(queues)),
  (select min(oldest.available_at) from generate_series(-100, 100) p cross join lateral (
     select available_at from jobs where queue = q.name and status = 'queued' and priority = p
       and organization_id = %(org)s order by id limit 1) oldest)
from unnest(%(names)s::text[]) as q(name)
"""


@dataclass(frozen=True)
class Load:
    """Jobs of the caller's organisation. ``oldest_queued_at``: since when the oldest claimable job could have run."""

    queued: Count
    running: Count
    waiting: Count
    oldest_queued_at: datetime | None
    workers: int


class QueueFilter(ListQuery):
    noun: ClassVar[str] = "queue"

    def narrow(self, principal: Principal) -> QuerySet[Queue]:
        principal.require("queues.read")
        return Queue.objects.all()


def page(principal: Principal, query: QueueFilter) -> Page[tuple[Queue, Load]]:
    """A page of queues by name, with their load."""
    found: Page[Queue] = keyset(query.narrow(principal), query, field="name", descending=False)
    loads = _loads(principal, [queue.name for queue in found.rows])
    return Page([(queue, loads[queue.name]) for queue in found.rows], found.next)


def get(principal: Principal, name: str) -> tuple[Queue, Load]:
    """One queue with its load. Raises `NotFound`."""
    principal.require("queues.read")
    queue = Queue.objects.filter(name=name).first()
    if queue is None:
        raise NotFound("queue", name)
    return queue, _loads(principal, [name])[name]


def _loads(principal: Principal, names: list[str]) -> dict[str, Load]:
    parameters: dict[str, Any] = {
        "org": principal.organization_id,
        "names": names,
        "most": DEPTH_MAX + 1,
        "seen": workers.seen_since(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_LOADS, parameters)
        rows = cursor.fetchall()
    return {
        name: Load(_count(queued), _count(running), _count(waiting), oldest, living)
        for name, queued, running, waiting, living, oldest in rows
    }


def _count(value: int) -> Count:
    return Count(min(value, DEPTH_MAX), value <= DEPTH_MAX)
