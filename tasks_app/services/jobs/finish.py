"""Finish: a group of attempts is sealed, their jobs and tasks move on, with events, logs and dead letters: one commit.

Every write is guarded by job, attempt and worker: an attempt that lost its lease changes nothing, whatever it says.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DataError

from tasks_app.domain import faultpoints, jsonsafe
from tasks_app.domain.outcomes import Attempt, ErrorInfo, Failed, Outcome, Settlement, Waiting, settle
from tasks_app.domain.states import JOB_FINAL, JobStatus, TaskStatus, sources
from tasks_app.services import events, sql
from tasks_app.services.bells import bells
from tasks_app.services.jobs import claim
from tasks_app.services.jobs.claim import Claimed
from tasks_app.services.jobs.ready import ready_due
from tasks_app.services.waits import wake

log = structlog.get_logger()

# Every status that finish may write can be reached from these (domain/states).
_TASK_FROM = sorted(
    set.intersection(*(set(sources(s)) for s in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED)))
    & set(sources(TaskStatus.WAITING))
)

_FINISH = """
i as materialized (
  select * from jsonb_to_recordset(%(rows)s::jsonb) as i(job uuid, execution uuid, attempt int, worker uuid,
    output jsonb, ended_ago_s float8, duration_ms float8, progress jsonb, action_version smallint, dropped int,
    steps_reused int{more})),
-- What was to go on later ends here when somebody asked to cancel it meanwhile.
g as (
  update jobs d set worker_id = null, lease_expires_at = null, output = i.output, error = {error},
    status = case when {final} or cancel_requested_at is null then {job_status} else 'cancelled' end,
    completed_at = case when {final} or cancel_requested_at is not null
      then now() - ended_ago_s * interval '1 s' end,
    available_at = case when {final} or cancel_requested_at is not null then available_at
      else now() + {delay_s} * interval '1 s' end,
    blocked_by = case when {final} or cancel_requested_at is not null then null else {blocked_by} end,
    uncounted = d.uncounted + {uncounted}, interruptions = d.interruptions + {interruptions},
    checkpoint = coalesce({checkpoint}, d.checkpoint), progress = coalesce(i.progress, d.progress)
  from i where d.id = i.job and d.status = 'running' and d.attempt = i.attempt and d.worker_id = i.worker
  returning {all}d.id as job, execution, i.output, ended_ago_s, duration_ms, i.progress, action_version, dropped,
    steps_reused, d.task_id, d.organization_id as org, d.action_id, d.status as job_to, d.completed_at as over_at,
    d.available_at as later,
    case when d.status = 'cancelled' then 'cancelled' else {task_status} end as task_to),
x as (
  update executions e set status = {execution_status}, output = g.output, error = {error}, progress = g.progress,
    completed_at = now() - ended_ago_s * interval '1 s', duration_ms = g.duration_ms,
    started_at = now() - (ended_ago_s + g.duration_ms / 1000) * interval '1 s',
    action_version = g.action_version, log_lines_dropped = dropped, steps_reused = g.steps_reused,
    interrupted = {execution_status} = 'lost'
  from g where e.id = g.execution and e.status = 'running'),
-- The task of a running job is running. One that is not has been ended by somebody else, and stays as it is.
r as (
  update tasks t set
    status = case when {open} then task_to else t.status end,
    output = case when {open} then g.output else t.output end,
    error = case when {open} then {error} else t.error end,
    completed_at = case when {open} then over_at else t.completed_at end,
    check_at = case when {open} then later + interval '1 hour' else t.check_at end
  from g where t.id = g.task_id
  returning {all}job, execution, org, task_id, action_id, job_to, task_to, over_at, t.created_by_type as by_type,
    t.created_by_id as by_id, t.correlation_id,
    t.check_at = later + interval '1 hour' as moved){extras}"""
# Whether the task may go to `task_to` (domain/states).
_OPEN = "t.status in ({states})"
# What a row says, and what is known of it when the group holds nothing but successes, as nearly every group does: the
# less PostgreSQL has to read and to carry, the better.
_SAID = {
    "job_status": ("text", "'completed'"),
    "execution_status": ("text", "'completed'"),
    "task_status": ("text", "'completed'"),
    "final": ("boolean", "true"),
    "error": ("jsonb", "null::jsonb"),
    "delay_s": ("float8", "0"),
    "blocked_by": ("jsonb", "null::jsonb"),
    "uncounted": ("int", "0"),
    "interruptions": ("int", "0"),
    "checkpoint": ("jsonb", "null::jsonb"),
    "fingerprint": ("text", "null::text"),
    "note": ("text", "null::text"),
}
# What few groups need: dead letters, notes for the task's log, log lines. Opening three more tables costs each finish.
_EXTRAS = """,
d as (
  insert into dead_letter_jobs (id, organization_id, job_id, execution_id, action_id, error, fingerprint, status,
    decided_by, reason, created_at)
  select devos_new_id(), org, job, execution, action_id, {error}, {fingerprint}, 'open', '', '', now()
  from r where {fingerprint} is not null),
n as (
  insert into task_logs (task_id, level, message, metadata, timestamp)
  select task_id, case when over_at is not null then 'error' else 'warn' end, {note}, '{}', now()
  from r where {note} is not null and ({final} or job_to <> 'cancelled')),
l as (
  insert into execution_logs (execution_id, level, message, metadata, timestamp)
  select execution, level, message, metadata, now() - ago_s * interval '1 s'
  from jsonb_to_recordset(%(logs)s::jsonb)
    as l(execution uuid, level text, message text, metadata jsonb, ago_s float8))"""
_ENDED = """select devos_new_id(), noun || status, org, by_type, by_id, task_id,
    case when noun <> 'task.' then job end, execution, case when {error} is null then '{}'
      else jsonb_build_object('code', {error} -> 'code', 'message', {error} -> 'message') end, correlation_id, execution
  from r cross join lateral (values ('execution.', {execution_status}), ('job.', job_to),
    ('task.', case when moved then task_to end),
    ('job.', case when {fingerprint} is not null then 'dead_lettered' end)) as v(noun, status)
  where v.status is not null"""
# How many were accepted; which, only when some were refused.
_ACCEPTED = """select count(*) as accepted,
    case when count(*) < %(size)s then string_agg(execution::text, ' ') end as which from g"""


class _Kind(NamedTuple):
    """Which statement a group needs."""

    successes: bool
    extras: bool


@cache
def _statement(kind: _Kind, then: Literal["nothing", "claim one", "claim several"]) -> sql.Prepared:
    """The statement of a finish, and of what it claims in the same stroke."""
    ended = _filled(_FINISH.replace("{extras}", _EXTRAS if kind.extras else ""), kind)
    happened = f"{events.INSERT} {_filled(_ENDED, kind)}"
    if then == "nothing":
        return sql.prepared(f"with {ended}, v as ({happened}) {_ACCEPTED}")
    claiming = claim.ctes(several=then == "claim several")
    rows = f"select accepted, which, {claim.COLUMNS} from ({_ACCEPTED}) as f left join s on true {claim.ORDER}"
    return sql.prepared(f"with {ended}, {claiming}, v as ({happened} union all {claim.STARTED}) {rows}")


def _filled(text: str, kind: _Kind) -> str:
    """The text with what is said of a row in the place of its names."""
    text = text.replace("{open}", _OPEN.replace("{states}", ", ".join(f"'{status}'" for status in _TASK_FROM)))
    more, carried = "", ""
    if not kind.successes:
        more = "".join(f", said_{name} {type}" for name, (type, _) in _SAID.items())
        carried = "".join(f"said_{name}, " for name in _SAID)
    text = text.replace("{more}", more).replace("{all}", carried)
    for name, (_, known) in _SAID.items():
        text = text.replace(f"{{{name}}}", known if kind.successes else f"said_{name}")
    return text


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
    """`finish` a group and `claim` the next jobs: one statement, one commit. An empty group is a plain claim."""
    if not group:
        return claim.claim(queue, worker_id, limit, light)
    settled = _settle(group)
    kind, parameters = _parameters(settled)
    parameters |= claim.parameters(queue, worker_id, limit, light)
    try:
        rows = sql.run_prepared(_statement(kind, "claim several" if limit > 1 else "claim one"), parameters)
    except DataError:
        _one_by_one(group)
        return claim.claim(queue, worker_id, limit, light)
    _after_commit(settled, *rows[0][:2])
    return claim.claimed([row for row in rows if row[2] is not None])


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
    kind, parameters = _parameters(settled)
    [(accepted, which)] = sql.run_prepared(_statement(kind, "nothing"), parameters)
    return _after_commit(settled, accepted, which)


def _settle(group: Sequence[Finished]) -> list[tuple[Finished, Settlement]]:
    faultpoints.reach("finish.before_commit")
    # Rows are locked in the order of the ids, as everywhere.
    in_order = sorted(group, key=lambda one: one.attempt.job_id)
    return [(one, settle(one.outcome, one.attempt, settings.DEVOS.max_interruptions)) for one in in_order]


def _parameters(settled: Sequence[tuple[Finished, Settlement]]) -> tuple[_Kind, dict[str, Any]]:
    """Which statement is needed, and what it takes."""
    now = time.monotonic()
    successes = all(change.job is JobStatus.COMPLETED for _, change in settled)
    row = _success if successes else _row
    rows = sql.document([row(one, change, now) for one, change in settled])
    logs = [line for one, _ in settled for line in _logs(one, now)]
    if logs or any(change.note or change.fingerprint for _, change in settled):
        return _Kind(successes, extras=True), {"rows": rows, "size": len(settled), "logs": sql.document(logs)}
    return _Kind(successes, extras=False), {"rows": rows, "size": len(settled)}


def _success(one: Finished, change: Settlement, now: float) -> dict[str, Any]:
    return {
        "job": one.attempt.job_id,
        "execution": one.attempt.execution_id,
        "attempt": one.attempt.attempt,
        "worker": one.worker_id,
        "output": change.output,
        "ended_ago_s": now - one.ended_at,
        "duration_ms": one.duration_ms,
        "progress": one.progress,
        "action_version": one.action_version,
        "dropped": one.log_lines_dropped,
        "steps_reused": one.steps_reused,
    }


def _row(one: Finished, change: Settlement, now: float) -> dict[str, Any]:
    return {
        **_success(one, change, now),
        "said_job_status": change.job,
        "said_execution_status": change.execution,
        "said_task_status": change.task,
        "said_final": change.job in JOB_FINAL,
        "said_error": change.error,
        "said_delay_s": change.delay_s,
        "said_blocked_by": change.blocked_by,
        "said_uncounted": change.uncounted,
        "said_interruptions": change.interruptions,
        "said_checkpoint": change.checkpoint,
        "said_fingerprint": change.fingerprint,
        "said_note": change.note,
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


def _after_commit(settled: Sequence[tuple[Finished, Settlement]], count: int, which: str | None) -> set[UUID]:
    """What follows the commit. ``count`` were accepted; ``which``, when not all: their ids with spaces between."""
    faultpoints.reach("finish.after_commit")
    accepted = {one.attempt.execution_id for one, _ in settled}
    if count < len(accepted):
        refused = accepted - {UUID(execution) for execution in (which or "").split()}
        accepted -= refused
        log.warning("execution.refused", executions=sorted(str(execution) for execution in refused))
    if any(change.job is JobStatus.RETRYING and change.delay_s <= 0 for _, change in settled):
        ready_due()
    # What they wait for may have come while they were parked.
    if parked := [one.attempt.job_id for one, _ in settled if isinstance(one.outcome, Waiting)]:
        wake.quietly(lambda: wake.wake(parked))
    if parents := _parents(one for one, _ in settled if one.attempt.execution_id in accepted):
        wake.quietly(lambda: wake.parents_of_ended(parents))
    for one, change in settled:
        # Short jobs are over before anybody can watch them.
        if one.duration_ms >= settings.DEVOS.light_job_ms:
            bells().tell(str(one.attempt.task_id), str(change.task))
    return accepted


def _parents(ended: Iterable[Finished]) -> list[UUID]:
    """The tasks that may wait for one of these."""
    return sorted({one.attempt.parent_task_id for one in ended if one.attempt.parent_task_id})
