"""Renew: a worker's heartbeat. One statement extends the leases of what its living children run and shows it alive."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from tasks_app.services import sql

_RENEW = """
with w as (
  update workers set last_seen_at = now(), rss_mb = %(rss_mb)s, restarted_processes = %(restarts)s
  where id = %(worker)s),
mine as materialized (
  select e.id as execution, jobs.id, jobs.attempt, jobs.cancel_requested_at is not null as cancel,
    jobs.pause_requested_at is not null as pause
  from executions e join jobs on jobs.id = e.job_id and jobs.attempt = e.attempt
  where e.id = any(%(executions)s) and jobs.worker_id = %(worker)s and jobs.status = 'running'),
-- A verb may hold a row for a moment: the others must not wait for that one, which is renewed the next time.
-- Asked again under the lock: a job may have ended since it was read.
free as materialized (
  select jobs.id from jobs join mine on mine.id = jobs.id
  where jobs.status = 'running' and jobs.worker_id = %(worker)s and jobs.attempt = mine.attempt
  order by jobs.id for update of jobs skip locked),
j as (
  update jobs set lease_expires_at = now() + %(lease_s)s * interval '1 s' from free where jobs.id = free.id)
select execution, cancel, pause from mine
"""


@dataclass(frozen=True)
class Renewed:
    """An execution that is still this worker's, and what was asked of it."""

    execution_id: UUID
    cancel_requested: bool
    pause_requested: bool


def renew(worker_id: UUID, executions: list[UUID], *, rss_mb: float | None, restarts: int) -> list[Renewed]:
    """Extend the leases; what is missing from the answer is no longer this worker's."""
    parameters = {
        "worker": worker_id,
        "executions": executions,
        "lease_s": settings.DEVOS.lease_s,
        "rss_mb": rss_mb,
        "restarts": restarts,
    }
    return [Renewed(*row) for row in sql.run(_RENEW, parameters, sql.RUNTIME)]
