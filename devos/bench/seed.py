"""`devos bench seed`: fill the big tables of the running platform fast, to see how lists and pages behave then."""

from __future__ import annotations

import time

from django.db import connection

from tasks_app.models import Organization

_CHUNK = 50_000

# Finished work as it would look: mostly completed, a few per cent failed, spread over the last 30 days.
_SEED = """
with p as (select %(org)s::uuid as org, %(count)s::int as count),
i as (
  select g, at, devos_new_id(at) as task, devos_new_id(at) as job, devos_new_id(at) as execution,
    case when g %% 40 = 0 then 'failed' when g %% 97 = 0 then 'cancelled' else 'completed' end as status,
    (array['core.noop', 'core.echo', 'net.http.request', 'seo.website.scan',
      'monitor.http.check'])[1 + g %% 5] as action
  from p, generate_series(1, p.count) g, lateral (select now() - (g %% 2592000) * interval '1 s' as at) as past),
t as (
  insert into tasks (id, type, name, description, status, priority, organization_id, input, output, error,
    created_by_type, created_by_id, correlation_id, request_id, created_at, started_at, completed_at, check_at,
    cancel_requested_by, cancel_reason)
  select task, action, 'Seeded', '', status, 0, p.org, '{}', '{}',
    case status when 'failed' then '{"code": "SEEDED", "message": "Seeded failure"}'::jsonb end, 'system', 'seed',
    'seed', '', at, at, at + interval '1 s', at, '', '' from i, p),
j as (
  insert into jobs (id, task_id, organization_id, action_id, queue, status, priority, attempt, max_attempts,
    interruptions, uncounted, available_at, created_at, started_at, completed_at, after, input, output)
  select job, task, p.org, action, 'default', status, 0, 1, 3, 0, 0, at, at, at, at + interval '1 s', '{}', '{}', '{}'
  from i, p),
e as (
  insert into executions (id, action_id, organization_id, task_id, job_id, status, mode, actor_type, actor_id, attempt,
    max_attempts, created_at, started_at, completed_at, duration_ms, output, error, correlation_id, interrupted,
    steps_reused, log_lines_dropped)
  select execution, action, p.org, task, job, status, 'async', 'system', 'seed', 1, 3, at, at, at + interval '1 s',
    1000, '{}', case when status <> 'completed' then '{"code": "SEEDED", "message": "Seeded"}'::jsonb end, 'seed',
    false, 0, 0 from i, p)
insert into events (id, type, timestamp, organization_id, actor_type, actor_id, task_id, job_id, execution_id,
  correlation_id)
select devos_new_id(at), kind, at, p.org, 'system', 'seed', task, job, execution, 'seed'
from i, p, unnest(array['task.created', 'execution.started', 'execution.' || status, 'job.' || status,
  'task.' || status]) as kind
"""


def seed(executions: int, organization: str = "default") -> dict[str, float]:
    """Add ``executions`` finished executions each with task, job and five events; returns counts, seconds."""
    org = Organization.objects.get(slug=organization)
    started, left = time.monotonic(), executions
    with connection.cursor() as cursor:
        while left > 0:
            cursor.execute(_SEED, {"org": org.id, "count": min(left, _CHUNK)})
            left -= _CHUNK
        cursor.execute("analyze tasks, jobs, executions, events")
    return {"executions": executions, "events": executions * 5, "seconds": round(time.monotonic() - started, 1)}
