"""Wake: a parked job whose wait is over becomes claimable. Called after the commit that ended the wait or parked it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from tasks_app.services import sql
from tasks_app.services.jobs.ready import ready_due
from tasks_app.services.waits import ends

_WAKE = sql.statement("""
with c as materialized (
  select j.id from jobs j
  where j.id = any(%(jobs)s) and j.status = 'pending' and jsonb_exists(j.blocked_by, 'wait')
    and exists (select 1 from job_steps s where s.job_id = j.id and s.state <> 'open' and s.check_at is not null)
  order by j.id for update)
update jobs set available_at = now() from c where jobs.id = c.id and jobs.status = 'pending' returning 1
""")


def wake(jobs: Sequence[UUID]) -> int:
    """Let those of the jobs go on that are parked at a wait which is over; returns how many."""
    if not jobs:
        return 0
    woken = len(sql.run(_WAKE, {"jobs": list(jobs)}, sql.RUNTIME))
    if woken:
        ready_due()
    return woken


def wake_after_commit(jobs: Sequence[UUID], using: str = "default") -> None:
    """`wake` when the transaction on ``using`` commits; at once when there is none."""
    if jobs:
        transaction.on_commit(lambda: wake(jobs), using=using)


def parents_of_ended(parents: Sequence[UUID]) -> None:
    """Children of these tasks have ended, and that is committed: wake the parents that waited for the last of them."""
    wake(ends.by_children_of(parents))
