"""Ready: jobs whose time has come become claimable."""

from __future__ import annotations

from tasks_app.domain import clock
from tasks_app.domain.states import JobStatus, TaskStatus, sources
from tasks_app.services import sql
from tasks_app.services.bells import bells

_READY = """
with c as materialized (
  select id from jobs where status in ('pending', 'retrying') and available_at <= now() + %(shift_s)s * interval '1 s'
  order by available_at limit %(limit)s for update skip locked),
j as (
  update jobs set status = 'queued', blocked_by = null from c where jobs.id = c.id and jobs.status = any(%(job_from)s)
  returning jobs.id, jobs.task_id, jobs.queue, jobs.organization_id),
t as (
  update tasks set status = 'queued' from j where tasks.id = j.task_id and tasks.status = any(%(task_from)s)
  returning tasks.id),
v as (
  insert into events (id, type, organization_id, actor_type, actor_id, task_id, job_id, correlation_id, causation_id)
  select devos_new_id(), 'job.queued', j.organization_id, 'system', 'devos', j.task_id, j.id, tasks.correlation_id,
    j.task_id from j join tasks on tasks.id = j.task_id)
select queue, count(*) from j group by queue
"""


def ready_due(limit: int = 1_000) -> int:
    """Queue waiting jobs that are due (at most ``limit``) and ring for them; returns how many."""
    rows = sql.run(
        _READY,
        {
            "shift_s": clock.shift_s(),
            "limit": limit,
            "job_from": sources(JobStatus.QUEUED),
            "task_from": sources(TaskStatus.QUEUED),
        },
        sql.RUNTIME,
    )
    for queue, _ in rows:
        bells().ring(queue)
    return sum(count for _, count in rows)
