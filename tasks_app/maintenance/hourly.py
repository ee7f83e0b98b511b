"""The hourly tidy-up: partitions of the months to come, forgotten keys, and a look after tasks that hang."""

from __future__ import annotations

from tasks_app.domain.rollup import rollup
from tasks_app.domain.states import JobStatus, TaskStatus, sources
from tasks_app.maintenance.sweep import Sweep, run_all
from tasks_app.services import sql

_PARTITIONS = "select devos_ensure_partitions('events', 2) + devos_ensure_partitions('execution_logs', 2)"
_KEYS = """
delete from idempotency_keys where id in (
  select id from idempotency_keys where expires_at <= now() limit 10000 for update skip locked) returning 1
"""
_OVERDUE = """
select t.id, t.status, array_agg(j.status) from tasks t join jobs j on j.task_id = t.id
where t.status in ('queued', 'running', 'waiting') and t.check_at <= now() group by t.id limit 500
"""
_REPAIR = """
update tasks set status = %(status)s::text, check_at = now() + interval '1 hour',
  completed_at = case when %(status)s::text in ('completed', 'failed', 'cancelled') then now() end
where id = %(id)s and status = any(%(sources)s)
"""
_LATER = "update tasks set check_at = now() + interval '1 hour' where id = any(%(ids)s)"
_WORKERS = "delete from workers where last_seen_at < now() - interval '7 days' returning 1"


def tick() -> dict[str, int]:
    """Run the tidy-up; returns rows changed by sweep."""
    return run_all(
        [
            Sweep("partitions", lambda: sql.run(_PARTITIONS, {}, sql.RUNTIME)[0][0]),
            Sweep("idempotency_keys", lambda: len(sql.run(_KEYS, {}, sql.RUNTIME))),
            Sweep("task_repair", repair_tasks),
            Sweep("old_workers", lambda: len(sql.run(_WORKERS, {}, sql.RUNTIME))),
        ]
    )


def repair_tasks() -> int:
    """Bring tasks whose check is overdue to the status their jobs say; returns how many were wrong."""
    wrong = 0
    rows = sql.run(_OVERDUE, {}, sql.RUNTIME)
    for task_id, status, jobs in rows:
        derived = rollup([JobStatus(job) for job in jobs])
        if derived != status and status in sources(derived):
            sql.run(_REPAIR, {"id": task_id, "status": derived, "sources": sources(TaskStatus(derived))}, sql.RUNTIME)
            wrong += 1
    sql.run(_LATER, {"ids": [task_id for task_id, _, _ in rows]}, sql.RUNTIME)
    return wrong
