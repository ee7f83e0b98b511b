"""Finish: a group of attempts is sealed, their jobs and tasks move on, with events, logs and dead letters: one commit.

Every write is guarded by job, attempt and worker: an attempt that lost its lease changes nothing, whatever it says.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DataError

from tasks_app.domain import faultpoints, jsonsafe
from tasks_app.domain.outcomes import Attempt, ErrorInfo, Failed, Outcome, Settlement, Waiting, settle
from tasks_app.domain.states import JOB_FINAL, JobStatus, TaskStatus, sources
from tasks_app.services import sql
from tasks_app.services.bells import bells
from tasks_app.services.jobs import claim
from tasks_app.services.jobs.claim import Claimed
from tasks_app.services.jobs.ready import ready_due
from tasks_app.services.waits import wake

log = structlog.get_logger()

# The task of a running job is running; every status that finish may write can be reached from there (domain/states).
_TASK_FROM = sorted(
    set.intersection(*(set(sources(s)) for s in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED)))
    & set(sources(TaskStatus.WAITING))
)

# What few groups need: dead letters, notes for the task's log, log lines. Opening three more tables costs each finish.
_EXTRAS = """d as (
  insert into dead_letter_jobs (id, organization_id, job_id, execution_id, action_id, error, fingerprint, status,
    decided_by, reason, created_at)
  select devos_new_id(), org, job, execution, action_id, error, fingerprint, 'open', '', '', now()
  from g where fingerprint is not null),
n as (
  insert into task_logs (task_id, level, message, metadata, timestamp)
  select task_id, case when over then 'error' else 'warn' end, note, '{}', now()
  from g where note is not null and not stopped),
l as (
  insert into execution_logs (execution_id, level, message, metadata, timestamp)
  select execution, level, message, metadata, now() - ago_s * interval '1 s'
  from jsonb_to_recordset(%(logs)s::jsonb)
    as l(execution uuid, level text, message text, metadata jsonb, ago_s float8)),
"""
_FINISH = """
with i as materialized (
  select * from jsonb_to_recordset(%(rows)s::jsonb) as i(job uuid, execution uuid, attempt int, worker uuid,
    job_status text, execution_status text, task_status text, final boolean, output jsonb, error jsonb, delay_s float8,
    blocked_by jsonb, uncounted int, interruptions int, checkpoint jsonb, fingerprint text, note text,
    ended_ago_s float8, duration_ms float8, progress jsonb, action_version smallint, dropped int, steps_reused int)),
c as materialized (
  select jobs.id, task_id, organization_id as org, action_id, cancel_requested_at is not null as cancel
  from jobs join i on i.job = jobs.id
  where status = 'running' and jobs.attempt = i.attempt and worker_id = i.worker
  order by jobs.id for update of jobs),
-- What was to go on later ends here when somebody asked to cancel it meanwhile.
f as materialized (
  select i.*, c.*, final or cancel as over, now() - ended_ago_s * interval '1 s' as ended,
    now() + delay_s * interval '1 s' as later, cancel and not final as stopped
  from i join c on c.id = i.job),
g as materialized (
  select *, case when over then ended end as over_at,
    case when stopped then 'cancelled' else job_status end as job_to,
    case when stopped then 'cancelled' else task_status end as task_to from f),
j as (
  update jobs set status = g.job_to, worker_id = null, lease_expires_at = null, completed_at = g.over_at,
    available_at = case when g.over then available_at else g.later end,
    blocked_by = case when not g.over then g.blocked_by end, output = g.output, error = g.error,
    uncounted = jobs.uncounted + g.uncounted, interruptions = jobs.interruptions + g.interruptions,
    checkpoint = coalesce(g.checkpoint, jobs.checkpoint), progress = coalesce(g.progress, jobs.progress)
  from g where jobs.id = g.job),
x as (
  update executions e set status = execution_status, output = g.output, error = g.error, progress = g.progress,
    completed_at = ended, duration_ms = g.duration_ms, started_at = ended - g.duration_ms * interval '1 ms',
    action_version = g.action_version, log_lines_dropped = dropped, steps_reused = g.steps_reused,
    interrupted = execution_status = 'lost'
  from g where e.id = g.execution and e.status = 'running'),
t as (
  update tasks t set status = task_to, output = g.output, error = g.error, completed_at = over_at,
    check_at = later + interval '1 hour'
  -- Not compared plainly: the planner would take the index on statuses, which is full of dead entries.
  from g where t.id = g.task_id and t.status || '' = any(%(task_from)s)),
r as materialized (
  select g.*, created_by_type as by_type, created_by_id as by_id, correlation_id,
    case when over then parent_task_id end as parent
  from g join tasks on tasks.id = task_id),
{extras}v as (
  insert into events (id, type, organization_id, actor_type, actor_id, task_id, job_id, execution_id, data,
    correlation_id, causation_id)
  select devos_new_id(), s.noun || s.status, org, by_type, by_id, task_id,
    case when s.noun <> 'task.' then job end, execution,
    case when error is null then '{}' else jsonb_build_object('code', error -> 'code', 'message', error -> 'message')
    end, correlation_id, execution
  from r cross join lateral (values ('execution.', execution_status), ('job.', job_to), ('task.', task_to),
    ('job.', case when fingerprint is not null then 'dead_lettered' end)) as s(noun, status)
  where s.status is not null)
select execution, parent from r
"""

_PLAIN, _FULL = (sql.statement(_FINISH.replace("{extras}", extras)) for extras in ("", _EXTRAS))


@dataclass(slots=True)
class Finished:
    """An attempt that ended, as the worker saw it. Times are of `time.monotonic`, durations in milliseconds."""

    attempt: Attempt
    worker_id: UUID
    outcome: Outcome
    ended_at: float
    duration_ms: float
    action_version: int | None = None
    progress: dict[str, Any] | None = None
    logs: list[dict[str, Any]] = field(default_factory=list)
    log_lines_dropped: int = 0
    steps_reused: int = 0


def finish(group: Sequence[Finished]) -> set[UUID]:
    """Write the ends of a group of attempts; returns the ids of the executions that were accepted.

    One that PostgreSQL cannot store is written as a failure of its own and does not hold up the others. Refused ones
    (their lease was lost, somebody else finished them) are logged.
    """
    try:
        return _write(group)
    except DataError:
        return _one_by_one(group)


def finish_and_claim(
    group: Sequence[Finished], queue: str, worker_id: UUID, limit: int, light: Sequence[str] = ()
) -> list[Claimed]:
    """`finish` a group and `claim` the next jobs: one round trip, one commit. An empty group is a plain claim."""
    if not group:
        return claim.claim(queue, worker_id, limit, light)
    settled = _settle(group)
    try:
        ended, started = sql.run_together(
            [_statement(settled), claim.statement(queue, worker_id, limit, light, alone=False)], sql.RUNTIME
        )
    except DataError:
        _one_by_one(group)
        return claim.claim(queue, worker_id, limit, light)
    _after_commit(settled, ended)
    return claim.claimed(started)


def _one_by_one(group: Sequence[Finished]) -> set[UUID]:
    accepted: set[UUID] = set()
    for one in group:
        try:
            accepted |= _write([one])
        except DataError as error:
            message = f"The result cannot be stored: {jsonsafe.clean_text(str(error))[:500]}"
            one.outcome = Failed(ErrorInfo("RESULT_NOT_STORABLE", message, retryable=False))
            one.logs, one.progress = [], None
            accepted |= _write([one])
    return accepted


def _write(group: Sequence[Finished]) -> set[UUID]:
    settled = _settle(group)
    return _after_commit(settled, sql.run(*_statement(settled), sql.RUNTIME))


def _settle(group: Sequence[Finished]) -> list[tuple[Finished, Settlement]]:
    faultpoints.reach("finish.before_commit")
    return [(one, settle(one.outcome, one.attempt, settings.DEVOS.max_interruptions)) for one in group]


def _statement(settled: Sequence[tuple[Finished, Settlement]]) -> tuple[str, dict[str, Any]]:
    now = time.monotonic()
    logs = [line for one, _ in settled for line in _logs(one, now)]
    parameters = {"rows": sql.document([_row(one, change, now) for one, change in settled]), "task_from": _TASK_FROM}
    if logs or any(change.note or change.fingerprint for _, change in settled):
        return _FULL, {**parameters, "logs": sql.document(logs)}
    return _PLAIN, parameters


def _row(one: Finished, change: Settlement, now: float) -> dict[str, Any]:
    return {
        "job": one.attempt.job_id,
        "execution": one.attempt.execution_id,
        "attempt": one.attempt.attempt,
        "worker": one.worker_id,
        "job_status": change.job,
        "execution_status": change.execution,
        "task_status": change.task,
        "final": change.job in JOB_FINAL,
        "output": change.output,
        "error": change.error,
        "delay_s": change.delay_s,
        "blocked_by": change.blocked_by,
        "uncounted": change.uncounted,
        "interruptions": change.interruptions,
        "checkpoint": change.checkpoint,
        "fingerprint": change.fingerprint,
        "note": change.note,
        "ended_ago_s": now - one.ended_at,
        "duration_ms": one.duration_ms,
        "progress": one.progress,
        "action_version": one.action_version,
        "dropped": one.log_lines_dropped,
        "steps_reused": one.steps_reused,
    }


def _logs(one: Finished, now: float) -> list[dict[str, Any]]:
    return [log_row(one.attempt.execution_id, line, now) for line in one.logs]


def log_row(execution_id: UUID, line: dict[str, Any], now: float) -> dict[str, Any]:
    """A log line of the context (``at`` in monotonic seconds) as the row the statements insert."""
    return {
        "execution": execution_id,
        "level": line["level"],
        "message": line["message"],
        "metadata": line["metadata"],
        "ago_s": now - line["at"],
    }


def _after_commit(settled: Sequence[tuple[Finished, Settlement]], rows: list[tuple[Any, ...]]) -> set[UUID]:
    faultpoints.reach("finish.after_commit")
    accepted = {execution for execution, _ in rows}
    for one, _ in settled:
        if one.attempt.execution_id not in accepted:
            log.warning(
                "execution.refused", execution=str(one.attempt.execution_id), outcome=type(one.outcome).__name__
            )
    if any(change.job is JobStatus.RETRYING and change.delay_s <= 0 for _, change in settled):
        ready_due()
    # What they wait for may have come while they were parked.
    if parked := [one.attempt.job_id for one, _ in settled if isinstance(one.outcome, Waiting)]:
        wake.quietly(lambda: wake.wake(parked))
    if parents := sorted({parent for _, parent in rows if parent}):
        wake.quietly(lambda: wake.parents_of_ended(parents))
    for one, change in settled:
        # Short jobs are over before anybody can watch them.
        if one.duration_ms >= settings.DEVOS.light_job_ms:
            bells().tell(str(one.attempt.task_id), str(change.task))
    return accepted
