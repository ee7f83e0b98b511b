"""Enter: a running job comes to a wait, for the first time or again. It gets the result, or is told to park."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from tasks_app.domain import ids
from tasks_app.domain.waits import Standing, StepKind, StepState, WaitRequest, refused
from tasks_app.models import Approval, JobStep, Task
from tasks_app.services import events, sql
from tasks_app.services.jobs import steps
from tasks_app.services.jobs.claim import Claimed
from tasks_app.services.jobs.steps import Past
from tasks_app.services.waits import ends

# When a sweep first looks: early for what may have been missed, late for what cannot be.
_FIRST_CHECK_S = {StepKind.EVENT: 5.0, StepKind.CHILDREN: 5.0, StepKind.SLEEP: 60.0, StepKind.APPROVAL: 60.0}

_OPEN = sql.statement("""
insert into job_steps (job_id, ordinal, kind, name, state, organization_id, pattern, key, children, created_at,
  deadline_at, check_at)
select id, %(ordinal)s, %(kind)s, %(name)s, 'open', organization_id, %(pattern)s::varchar, %(key)s::varchar,
  %(children)s::uuid[], now(), now() + %(timeout_s)s * interval '1 s',
  now() + %(check_s)s * interval '1 s'
from jobs where id = %(job)s and attempt = %(attempt)s and worker_id = %(worker)s and status = 'running'
returning id, deadline_at
""")
_STAND = """
select state, output, deadline_at, extract(epoch from deadline_at - now())::float8,
  extract(epoch from deadline_at - created_at)::float8
from job_steps where id = %(step)s
"""
_TAKEN = "update job_steps set check_at = null where id = %(step)s and state <> 'open' and check_at is not null"
# Kept with the first reading: a child that is retried later does not change what its parent has seen.
_OUTCOMES = """
update job_steps s set output = (
  select jsonb_agg(jsonb_build_object('id', child.id, 'type', t.type, 'status', coalesce(t.status, 'missing'),
    'output', t.output, 'error', t.error) order by child.place desc)
  from unnest(s.children) with ordinality as child(id, place) left join tasks t on t.id = child.id)
where s.id = %(step)s and s.output is null
"""


def enter(job: Claimed, worker_id: UUID, ordinal: int, request: WaitRequest, past: Past | None) -> Standing:
    """The standing of the ``ordinal``-th step of a running job, which is a wait. ``past``: its row, if there is one.

    Raises `ActionError` ATTEMPT_SUPERSEDED when the job is not this worker's any more.
    """
    if past is not None and past.state == StepState.CANCELLED:
        # The job was over and is retried: nobody has seen an answer, so it is asked again.
        JobStep.objects.using(sql.RUNTIME).filter(id=past.id).delete()
        past = None
    step = past.id if past is not None else _open(job, worker_id, ordinal, request)
    if past is None or past.state == StepState.OPEN:
        _look(step, request.kind)
    return _stand(step, ordinal, request)


def _look(step: int, kind: StepKind) -> None:
    if kind is StepKind.EVENT:
        ends.by_early_events([step])
    elif kind is StepKind.CHILDREN:
        ends.by_children([step])
    ends.by_deadline([step])


def _open(job: Claimed, worker_id: UUID, ordinal: int, request: WaitRequest) -> int:
    attempt = job.attempt
    if request.kind is StepKind.CHILDREN:
        _check_children(attempt.task_id, request.children)
    parameters = {
        "job": attempt.job_id,
        "attempt": attempt.attempt,
        "worker": worker_id,
        "ordinal": ordinal,
        "kind": str(request.kind),
        "name": request.name,
        "pattern": request.pattern or None,
        "key": request.key if request.kind is StepKind.EVENT else None,
        "children": list(request.children) or None,
        "timeout_s": request.timeout_s,
        "check_s": _FIRST_CHECK_S[request.kind],
    }
    try:
        with transaction.atomic(using=sql.RUNTIME):
            made = sql.run(_OPEN, parameters, sql.RUNTIME)
            if not made:
                raise steps.superseded(ordinal, request.name)
            [(step, deadline_at)] = made
            if request.kind is StepKind.APPROVAL:
                _ask(job, step, request, deadline_at)
            elif request.kind is StepKind.EVENT:
                # Before anybody else can see the wait: an event that came earlier goes before one that comes now.
                ends.by_early_events([step])
    except IntegrityError as error:
        raise steps.superseded(ordinal, request.name) from error
    return int(step)


def _check_children(task_id: UUID, children: tuple[UUID, ...]) -> None:
    mine = Task.objects.using(sql.RUNTIME).filter(id__in=children, parent_task_id=task_id).count()
    if mine != len(set(children)):
        raise refused("ctx.wait_children takes tasks that this task has spawned; another id was among them.")


def _ask(job: Claimed, step: int, request: WaitRequest, deadline_at: datetime) -> None:
    row = Approval(
        organization_id=job.organization_id,
        task_id=job.attempt.task_id,
        job_id=job.attempt.job_id,
        step_id=step,
        title=request.title,
        details=request.details,
        role=request.role,
        permission=request.permission,
        expires_at=deadline_at,
    )
    row.save(using=sql.RUNTIME, force_insert=True)
    events.publish(
        "approval.requested",
        organization_id=job.organization_id,
        actor=job.actor,
        correlation_id=job.correlation_id,
        data={"title": row.title, "role": row.role},
        causation_id=job.attempt.execution_id,
        resource=("approval", row.public_id),
        task_id=job.attempt.task_id,
        job_id=job.attempt.job_id,
        execution_id=job.attempt.execution_id,
        using=sql.RUNTIME,
    )


def _stand(step: int, ordinal: int, request: WaitRequest) -> Standing:
    state, output, deadline_at, remaining_s, timeout_s = sql.run(_STAND, {"step": step}, sql.RUNTIME)[0]
    if state == StepState.OPEN:
        blocked_by = _blocked_by(step, ordinal, request, deadline_at, timeout_s)
        return Standing(StepState.OPEN, None, timeout_s, max(remaining_s, 0.0), blocked_by)
    if state == StepState.DONE and request.kind is StepKind.CHILDREN and output is None:
        sql.run(_OUTCOMES, {"step": step}, sql.RUNTIME)
        output = sql.run(_STAND, {"step": step}, sql.RUNTIME)[0][1]
    sql.run(_TAKEN, {"step": step}, sql.RUNTIME)
    return Standing(StepState(state), sql.load(output), timeout_s)


def _blocked_by(
    step: int, ordinal: int, request: WaitRequest, deadline_at: datetime, timeout_s: float
) -> dict[str, Any]:
    """``wait`` marks a job that is parked at one; the rest is for whoever asks why it does not go on."""
    since = deadline_at - timedelta(seconds=timeout_s)
    said: dict[str, Any] = {
        "reason": str(request.kind),
        "wait": ordinal,
        "since": since.isoformat(),
        "until": deadline_at.isoformat(),
    }
    if request.kind is StepKind.EVENT:
        said |= {"event": request.pattern, **({"key": request.key} if request.key else {})}
    elif request.kind is StepKind.APPROVAL:
        found = Approval.objects.using(sql.RUNTIME).filter(step_id=step).values_list("id", flat=True).first()
        said |= {"title": request.title, "role": request.role, "approval": found and ids.to_text("approval", found)}
    elif request.kind is StepKind.CHILDREN:
        said |= {"children": len(request.children)}
    return said
