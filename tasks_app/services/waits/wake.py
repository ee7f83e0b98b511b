"""Wake: a parked job whose wait is over becomes claimable. Called after the commit that ended the wait or parked it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import structlog
from django.db import DatabaseError, InterfaceError, connections, transaction

from tasks_app.services import sql
from tasks_app.services.jobs.ready import ready_due
from tasks_app.services.waits import ends

log = structlog.get_logger()

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


def parents_of_ended(parents: Sequence[UUID]) -> int:
    """Children of these tasks have ended, and that is committed: wake the parents that waited for the last of them."""
    return wake(ends.by_children_of(parents)) if parents else 0


def quietly(work: Callable[[], object]) -> None:
    """Do what follows a commit. That it fails must not make the commit look failed; the sweep does it again."""
    try:
        work()
    except (DatabaseError, InterfaceError) as error:
        log.warning("wait.not_woken", error=str(error))
        connections[sql.RUNTIME].close()


def after_commit(work: Callable[[], object], using: str = "default") -> None:
    """`quietly` when the transaction on ``using`` commits; at once when there is none."""
    transaction.on_commit(lambda: quietly(work), using=using)
