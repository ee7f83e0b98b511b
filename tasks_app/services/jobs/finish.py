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
from tasks_app.domain.outcomes import Attempt, ErrorInfo, Failed, Outcome, Settlement, settle
from tasks_app.domain.states import JOB_FINAL, JobStatus, TaskStatus, sources
from tasks_app.services import sql
from tasks_app.services.bells import bells
from tasks_app.services.jobs.ready import ready_due

log = structlog.get_logger()

# The task of a running job is running; every status that finish may write can be reached from there (domain/states).
_TASK_FROM = sorted(
    set.intersection(*(set(sources(s)) for s in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED)))
    & set(sources(TaskStatus.WAITING))
)

_FINISH = """
with i as materialized (
  select * from jsonb_to_recordset(%(rows)s::jsonb) as i(job uuid, execution uuid, attempt int, worker uuid,
    job_status text, execution_status text, task_status text, final boolean, output jsonb, error jsonb, delay_s float8,
    blocked_by jsonb, uncounted int, interruptions int, checkpoint jsonb, fingerprint text, note text,
    ended_ago_s float8, duration_ms float8, progress jsonb, action_version smallint, dropped int, steps_reused int)),
c as materialized (
  select jobs.id, jobs.cancel_requested_at is not null as cancel from jobs join i on i.job = jobs.id
  where jobs.status = 'running' and jobs.attempt = i.attempt and jobs.worker_id = i.worker
  order by jobs.id for update of jobs),
-- What was to go on later ends here when somebody asked to cancel it meanwhile.
f as materialized (
  select i.job, execution, execution_status, final or cancel as final, output, error, delay_s, uncounted, interruptions,
    checkpoint, fingerprint, note, ended_ago_s, duration_ms, progress, action_version, dropped, steps_reused,
    case when final or not cancel then job_status else 'cancelled' end as job_status,
    case when final or not cancel then task_status else 'cancelled' end as task_status,
    case when not cancel then blocked_by end as blocked_by
  from i join c on c.id = i.job),
j as (
  update jobs set status = f.job_status, worker_id = null, lease_expires_at = null,
    available_at = case when f.final then jobs.available_at else now() + f.delay_s * interval '1 s' end,
    completed_at = case when f.final then now() - f.ended_ago_s * interval '1 s' end,
    blocked_by = f.blocked_by, output = f.output, error = f.error,
    uncounted = jobs.uncounted + f.uncounted, interruptions = jobs.interruptions + f.interruptions,
    checkpoint = coalesce(f.checkpoint, jobs.checkpoint), progress = coalesce(f.progress, jobs.progress)
  from f where jobs.id = f.job
  returning jobs.id, jobs.task_id, jobs.organization_id, jobs.action_id, jobs.queue, f.execution),
x as (
  update executions e set status = f.execution_status, output = f.output, error = f.error, progress = f.progress,
    completed_at = now() - f.ended_ago_s * interval '1 s', duration_ms = f.duration_ms,
    started_at = now() - f.ended_ago_s * interval '1 s' - f.duration_ms * interval '1 ms',
    action_version = f.action_version, log_lines_dropped = f.dropped, steps_reused = f.steps_reused,
    interrupted = f.execution_status = 'lost'
  from f, j where j.execution = f.execution and e.id = f.execution and e.status = 'running'),
t as (
  update tasks t set status = f.task_status, output = f.output, error = f.error,
    completed_at = case when f.final then now() - f.ended_ago_s * interval '1 s' end,
    check_at = now() + interval '1 hour' + f.delay_s * interval '1 s'
  from f, j where j.execution = f.execution and t.id = j.task_id and t.status = any(%(task_from)s)
  returning t.id),
r as (
  select f.*, j.task_id, j.organization_id, j.action_id, tasks.created_by_type as by_type, tasks.created_by_id as by_id,
    tasks.correlation_id
  from f join j on j.execution = f.execution join tasks on tasks.id = j.task_id),
d as (
  insert into dead_letter_jobs (id, organization_id, job_id, execution_id, action_id, error, fingerprint, status,
    decided_by, reason, created_at)
  select devos_new_id(), organization_id, job, execution, action_id, error, fingerprint, 'open', '', '', now()
  from r where fingerprint is not null),
n as (
  insert into task_logs (task_id, level, message, metadata, timestamp)
  select task_id, case when final then 'error' else 'warn' end, note, '{}', now() from r where note is not null),
l as (
  insert into execution_logs (execution_id, level, message, metadata, timestamp)
  select execution, level, message, metadata, now() - ago_s * interval '1 s'
  from jsonb_to_recordset(%(logs)s::jsonb)
    as l(execution uuid, level text, message text, metadata jsonb, ago_s float8)),
v as (
  insert into events (id, type, organization_id, actor_type, actor_id, task_id, job_id, execution_id, data,
    correlation_id, causation_id)
  select devos_new_id(), s.prefix || s.status, organization_id, by_type, by_id, task_id, case when s.prefix <> 'task.' then job end, execution,
    case when error is null then '{}'
      else jsonb_build_object('code', error -> 'code', 'message', error -> 'message') end,
    correlation_id, execution
  from r cross join lateral (values ('execution.', execution_status), ('job.', job_status), ('task.', task_status),
    ('job.', case when fingerprint is not null then 'dead_lettered' end)) as s(prefix, status)
  where s.status is not null)
select execution, queue from j
"""


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
    faultpoints.reach("finish.before_commit")
    try:
        accepted = _write(group)
    except DataError:
        accepted = _one_by_one(group)
    faultpoints.reach("finish.after_commit")
    for one in group:
        if one.attempt.execution_id not in accepted:
            log.warning(
                "execution.refused", execution=str(one.attempt.execution_id), outcome=type(one.outcome).__name__
            )
    return accepted


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
    now = time.monotonic()
    settled = [(one, settle(one.outcome, one.attempt, settings.DEVOS.max_interruptions)) for one in group]
    rows = sql.run(
        _FINISH,
        {
            "rows": sql.document([_row(one, change, now) for one, change in settled]),
            "logs": sql.document([line for one in group for line in _logs(one, now)]),
            "task_from": _TASK_FROM,
        },
        sql.RUNTIME,
    )
    _after_commit(settled)
    return {execution for execution, _ in rows}


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


def _after_commit(settled: Sequence[tuple[Finished, Settlement]]) -> None:
    if any(change.job is JobStatus.RETRYING and change.delay_s <= 0 for _, change in settled):
        ready_due()
    for one, change in settled:
        # Only tasks somebody may be watching: ones short enough to share a group are over before a page is drawn.
        if len(settled) == 1:
            bells().tell(str(one.attempt.task_id), str(change.task))
