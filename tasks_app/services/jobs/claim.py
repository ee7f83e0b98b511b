"""Claim: a batch of jobs becomes running, with execution rows and leases, in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from django.conf import settings

from tasks_app.domain import faultpoints
from tasks_app.domain.outcomes import Attempt
from tasks_app.domain.principal import Actor
from tasks_app.services import events, sql

_BEST = """select id, priority, action_id from jobs where queue = %(queue)s and status = 'queued'
    and not exists (select 1 from queues where name = %(queue)s and paused_at is not null)
  order by priority desc, id limit %(limit)s for update skip locked"""
# The first, and those after it as long as all are of light actions: a long job is always alone.
_SEVERAL = f"""select id from (
    select id, row_number() over w as place,
      bool_and(action_id = any(string_to_array(%(light)s, ' '))) over w as light
    from ({_BEST}) as best window w as (order by priority desc, id)) as ordered
  where place = 1 or light"""

_CLAIM = """
k as materialized ({batch}),
j as (
  update jobs d set status = 'running', attempt = d.attempt + 1, worker_id = %(worker)s, blocked_by = null,
    lease_expires_at = now() + %(lease_s)s * interval '1 s', started_at = coalesce(d.started_at, now()), progress = null
  from k where d.id = k.id
  returning d.id, d.task_id, d.organization_id, d.action_id, d.queue, d.priority, d.attempt, d.max_attempts,
    d.uncounted, d.interruptions, d.input, d.checkpoint,
    d.cancel_requested_at is not null as cancel_requested),
-- A statement changes a row once: this takes for granted that a task has one job. A status of its own stays.
s as (
  update tasks t set status = case when t.status in ('queued', 'waiting') then 'running' else t.status end,
    started_at = coalesce(t.started_at, now())
  from j where t.id = j.task_id
  returning j.*, devos_new_id() as execution, t.created_by_type as by_type, t.created_by_id as by_id, t.correlation_id,
    t.request_id, t.parent_task_id, t.started_at = now() as first),
e as (
  insert into executions (id, action_id, organization_id, task_id, job_id, status, mode, actor_type, actor_id, attempt,
    max_attempts, worker_id, created_at, started_at, correlation_id, interrupted, steps_reused, log_lines_dropped)
  select execution, action_id, organization_id, task_id, id, 'running', 'async', by_type, by_id, attempt, max_attempts,
    %(worker)s, now(), now(), correlation_id, false, 0, 0 from s)"""
# `execution.started` carries the execution's own id, so that what it causes can name it without a look-up.
STARTED = """select execution, 'execution.started', organization_id, by_type, by_id, task_id, id, execution,
    jsonb_build_object('action', action_id, 'attempt', attempt), correlation_id, task_id from s
  union all
  select devos_new_id(), 'job.started', organization_id, by_type, by_id, task_id, id, execution, '{}', correlation_id,
    execution from s
  union all
  select devos_new_id(), 'task.started', organization_id, by_type, by_id, task_id, null, execution, '{}',
    correlation_id, execution from s where first"""
COLUMNS = """id, execution, task_id, attempt, max_attempts, uncounted, interruptions, action_id,
  parent_task_id, organization_id, queue, input, checkpoint, by_type, by_id, correlation_id, request_id,
  cancel_requested"""
ORDER = "order by interruptions, priority desc, id"


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
    return claimed(sql.run_prepared(_alone(limit > 1), parameters(queue, worker_id, limit, light)))


@cache
def _alone(several: bool) -> sql.Prepared:
    # A start that a crash of the database forgets leaves the job queued, so its commit does not wait for the disk: the
    # commit of the finish flushes everything before it.
    quick = "nullif(set_config('synchronous_commit', 'off', true), 'off')"
    return sql.prepared(
        f"with {ctes(several)}, v as ({events.INSERT} {STARTED}) select {quick}, null, {COLUMNS} from s {ORDER}"
    )


def ctes(several: bool) -> str:
    """The claim as common table expressions; ``s`` holds what was claimed. Not ``several``: of one job."""
    return _CLAIM.replace("{batch}", _SEVERAL if several else _BEST)


def parameters(queue: str, worker_id: UUID, limit: int, light: Sequence[str]) -> dict[str, Any]:
    """What the claim needs."""
    return {
        "queue": queue,
        "worker": worker_id,
        "limit": limit,
        "light": " ".join(light),
        "lease_s": settings.DEVOS.lease_s,
    }


def claimed(rows: list[tuple[Any, ...]]) -> list[Claimed]:
    """The jobs behind the rows of a claim that is committed."""
    faultpoints.reach("claim.after_commit")
    return [_claimed(row) for row in rows]


def _claimed(row: tuple[Any, ...]) -> Claimed:
    _, _, job, execution, task, attempt, max_attempts, uncounted, interruptions, action_id, parent, *rest = row
    organization, queue, value, checkpoint, actor_type, actor_id, correlation_id, request_id, cancel = rest
    return Claimed(
        Attempt(job, execution, task, attempt, max_attempts, uncounted, interruptions, action_id, parent),
        organization,
        queue,
        sql.load(value),
        sql.load(checkpoint),
        Actor(actor_type, actor_id),
        correlation_id,
        request_id,
        cancel,
    )
