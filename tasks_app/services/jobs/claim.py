"""Claim: a batch of jobs becomes running, with execution rows and leases, in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from tasks_app.domain import faultpoints
from tasks_app.domain.outcomes import Attempt
from tasks_app.domain.principal import Actor
from tasks_app.services import sql

# The start is committed asynchronously: a start that a crash of the database forgets leaves the job queued, and the
# synchronous commit of the finish flushes everything before it.
_CLAIM = sql.statement("""
with s as materialized (
  select set_config('synchronous_commit', case when %(alone)s then 'off' else current_setting('synchronous_commit') end,
    true)),
b as materialized (
  select id, priority, action_id from jobs, s where queue = %(queue)s and status = 'queued'
    and not exists (select 1 from queues where name = %(queue)s and paused_at is not null)
  order by priority desc, id limit %(limit)s for update of jobs skip locked),
-- The first, and those after it as long as all are of light actions: a long job is always alone.
c as materialized (
  select id from (
    select id, row_number() over w as place, bool_and(action_id = any(%(light)s)) over w as light
    from b window w as (order by priority desc, id)) as ordered
  where place = 1 or light),
j as (
  update jobs d set status = 'running', attempt = d.attempt + 1, worker_id = %(worker)s, blocked_by = null,
    lease_expires_at = now() + %(lease_s)s * interval '1 s', started_at = coalesce(d.started_at, now()), progress = null
  from c where d.id = c.id
  returning d.*),
t as (
  update tasks t set status = 'running', started_at = coalesce(t.started_at, now())
  -- Not compared plainly: the planner would take the index on statuses, which is full of dead entries.
  from j where t.id = j.task_id and t.status || '' in ('queued', 'waiting')
  returning t.id, t.started_at = now() as first),
r as materialized (
  select j.*, devos_new_id() as execution_id, t.created_by_type, t.created_by_id, t.correlation_id, t.request_id
  from j join tasks t on t.id = j.task_id),
e as (
  insert into executions (id, action_id, organization_id, task_id, job_id, status, mode, actor_type, actor_id, attempt,
    max_attempts, worker_id, created_at, started_at, correlation_id, interrupted, steps_reused, log_lines_dropped)
  select execution_id, action_id, organization_id, task_id, id, 'running', 'async', created_by_type, created_by_id,
    attempt, max_attempts, %(worker)s, now(), now(), correlation_id, false, 0, 0 from r),
v as (
  insert into events (id, type, organization_id, actor_type, actor_id, task_id, job_id, execution_id, data,
    correlation_id, causation_id)
  select execution_id, 'execution.started', organization_id, created_by_type, created_by_id, task_id, id, execution_id,
    jsonb_build_object('action', action_id, 'attempt', attempt), correlation_id, task_id from r
  union all
  select devos_new_id(), 'job.started', organization_id, created_by_type, created_by_id, task_id, id, execution_id,
    '{}', correlation_id, execution_id from r
  union all
  select devos_new_id(), 'task.started', organization_id, created_by_type, created_by_id, task_id, null, execution_id,
    '{}', correlation_id, execution_id from r join t on t.id = r.task_id where t.first)
select id, execution_id, task_id, attempt, max_attempts, uncounted, interruptions, action_id, organization_id, queue,
  input, checkpoint, created_by_type, created_by_id, correlation_id, request_id, cancel_requested_at is not null
from r order by interruptions, priority desc, id
""")


@dataclass(frozen=True, slots=True)
class Claimed:
    """A job this process may run now, and everything it needs to run it."""

    attempt: Attempt
    organization_id: UUID
    queue: str
    input: Any
    checkpoint: dict[str, Any] | None
    actor: Actor
    correlation_id: str
    request_id: str
    cancel_requested: bool


def claim(queue: str, worker_id: UUID, limit: int, light: Sequence[str] = ()) -> list[Claimed]:
    """Take up to ``limit`` claimable jobs, best priority first, then oldest.

    ``light``: ids of actions known to be very short; more than one job is taken only of these.

    Jobs that were interrupted before come last, so that one which kills its process takes no neighbour with it.
    """
    return claimed(sql.run(*statement(queue, worker_id, limit, light), sql.RUNTIME))


def statement(
    queue: str, worker_id: UUID, limit: int, light: Sequence[str], *, alone: bool = True
) -> tuple[str, dict[str, Any]]:
    """The claim as a statement. Not ``alone``: its transaction also ends attempts, so its commit must be flushed."""
    parameters = {
        "queue": queue,
        "worker": worker_id,
        "limit": limit,
        "light": list(light),
        "lease_s": settings.DEVOS.lease_s,
        "alone": alone,
    }
    return _CLAIM, parameters


def claimed(rows: list[tuple[Any, ...]]) -> list[Claimed]:
    """The jobs behind the rows of a claim that is committed."""
    faultpoints.reach("claim.after_commit")
    return [_claimed(row) for row in rows]


def _claimed(row: tuple[Any, ...]) -> Claimed:
    job, execution, task, attempt, max_attempts, uncounted, interruptions, action_id, *rest = row
    organization, queue, value, checkpoint, actor_type, actor_id, correlation_id, request_id, cancel = rest
    return Claimed(
        Attempt(job, execution, task, attempt, max_attempts, uncounted, interruptions, action_id),
        organization,
        queue,
        sql.load(value),
        sql.load(checkpoint),
        Actor(actor_type, actor_id),
        correlation_id,
        request_id,
        cancel,
    )
