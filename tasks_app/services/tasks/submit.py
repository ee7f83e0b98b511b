"""Submit: one statement in one transaction (or the caller's) writes task, job, events, key and audit; then a bell."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from tasks_app.domain import faultpoints, ids, jsonsafe
from tasks_app.domain.errors import Conflict, DevosError, InvalidInput
from tasks_app.domain.principal import Principal
from tasks_app.models import IdempotencyKey, Job
from tasks_app.services import sql
from tasks_app.services.bells import ring_after_commit
from tasks_app.services.tasks import prepare
from tasks_app.services.tasks.spec import Submitted, TaskSpec

_SUBMIT = sql.statement("""
with p as (
  select %(org)s::uuid as org, %(actor_type)s::text as actor_type, %(actor_id)s::text as actor_id,
    %(request_id)s::text as request_id, %(address)s::text as address, %(key)s::text as key, %(reason)s::text as reason),
i as (
  select *, case when delay_s > 0 then 'pending' else 'queued' end as status
  from jsonb_to_recordset(%(rows)s::jsonb) as i(task uuid, job uuid, type text, name text, description text,
    priority smallint, queue text, project uuid, resource_type text, resource_id text, delay_s float8,
    run_at timestamptz, parent uuid, replay_of uuid, max_attempts smallint, correlation_id text, input jsonb)),
t as (
  insert into tasks (id, type, name, description, status, priority, organization_id, project_id, resource_type,
    resource_id, input, created_by_type, created_by_id, parent_task_id, replay_of_id, correlation_id, request_id,
    created_at, check_at, cancel_requested_by, cancel_reason)
  select task, type, name, description, case status when 'pending' then 'waiting' else 'queued' end, priority,
    p.org, project, resource_type, resource_id, input, p.actor_type, p.actor_id, parent, replay_of,
    correlation_id, p.request_id, now(), now() + interval '1 hour' + delay_s * interval '1 s', '', '' from i, p),
j as (
  insert into jobs (id, task_id, organization_id, action_id, queue, status, priority, attempt, max_attempts,
    interruptions, uncounted, available_at, created_at, blocked_by, after, input)
  select job, task, p.org, type, queue, status, priority, 0, max_attempts, 0, 0,
    coalesce(run_at, now() + delay_s * interval '1 s'), now(),
    case when delay_s > 0 then '{"reason": "time"}'::jsonb end, '{}', input
  from i, p),
k as (
  insert into idempotency_keys (organization_id, owner, key, request_hash, task_ids, created_at, expires_at)
  select p.org, %(owner)s::text, p.key, %(hash)s::text, (select jsonb_agg(array[task, job]) from i), now(),
    now() + %(keep_h)s::int * interval '1 hour' from p where p.key is not null),
a as (
  insert into audit_entries (id, timestamp, organization_id, actor_type, actor_id, verb, object_type, object_id, reason,
    after, request_id, address)
  select %(audit)s::uuid, now(), p.org, p.actor_type, p.actor_id, 'task.submit', 'task', %(object)s::text, p.reason,
    jsonb_build_object('type', %(type)s::text, 'count', %(count)s::int), p.request_id, p.address from p)
insert into events (id, type, organization_id, actor_type, actor_id, resource_type, resource_id, task_id, job_id, data,
  metadata, correlation_id, causation_id)
select task, 'task.created', p.org, p.actor_type, p.actor_id, resource_type, resource_id, task, null::uuid,
  jsonb_build_object('type', type, 'priority', priority), jsonb_build_object('request_id', p.request_id),
  correlation_id, %(causation)s::uuid from i, p
union all
select devos_new_id(), 'job.' || status, p.org, p.actor_type, p.actor_id, null, null, task, job,
  jsonb_build_object('action', type, 'queue', queue), '{}', correlation_id, task from i, p
""")


def submit(
    principal: Principal, spec: TaskSpec, *, idempotency_key: str | None = None, causation_id: UUID | None = None
) -> Submitted:
    """Create one task with its job. See `submit_many`."""
    return submit_many(principal, [spec], idempotency_key=idempotency_key, causation_id=causation_id)[0]


def submit_many(
    principal: Principal,
    specs: Sequence[TaskSpec],
    *,
    idempotency_key: str | None = None,
    causation_id: UUID | None = None,
) -> list[Submitted]:
    """Create tasks with their jobs, all or none, in the order given.

    ``idempotency_key``: a repeated key of the same caller answers what the first call created (``replayed``); with
    other content it raises `Conflict`. ``causation_id``: the event that led to this. Raises `InvalidInput` (details
    name the index), `PermissionDenied`, `PayloadTooLarge`, `ActionNotRegistered`.
    """
    if not specs:
        raise InvalidInput("Give at least one task.", [{"field": "tasks", "problem": "empty"}])
    request_hash = _hash(specs) if idempotency_key else ""
    if idempotency_key and (earlier := _earlier(principal, idempotency_key, request_hash)):
        return earlier
    # A parent is locked while something is put below it.
    with transaction.atomic() if any(spec.parent_task for spec in specs) else nullcontext():
        return write(principal, _rows(principal, specs), idempotency_key, request_hash, causation_id)


def write(
    principal: Principal,
    rows: list[dict[str, Any]],
    idempotency_key: str | None = None,
    request_hash: str = "",
    causation_id: UUID | None = None,
    reason: str = "",
) -> list[Submitted]:
    """Write prepared rows (see `prepare.row`) and ring after the commit."""
    parameters = {
        "rows": sql.document(rows),
        "org": principal.organization_id,
        "actor_type": principal.actor.type,
        "actor_id": principal.actor.id,
        "owner": owner_of(principal),
        "request_id": principal.request_id,
        "address": principal.address,
        "audit": ids.new_id(),
        "object": ids.to_text("task", rows[0]["task"]),
        "type": rows[0]["type"],
        "count": len(rows),
        "key": idempotency_key,
        "hash": request_hash,
        "keep_h": settings.DEVOS.idempotency_keep_h,
        "causation": causation_id,
        "reason": reason,
    }
    try:
        # The statement is atomic by itself; a savepoint is needed only inside a transaction that must survive a clash.
        if idempotency_key:
            with transaction.atomic():
                sql.run(_SUBMIT, parameters, "default")
        else:
            sql.run(_SUBMIT, parameters, "default")
    except IntegrityError:
        earlier = idempotency_key and _earlier(principal, idempotency_key, request_hash)
        if not earlier:
            raise
        return earlier
    faultpoints.reach("submit.after_commit")
    ring_after_commit(row["queue"] for row in rows if row["delay_s"] <= 0)
    return [
        Submitted(task_id=row["task"], job_id=row["job"], status="waiting" if row["delay_s"] > 0 else "queued")
        for row in rows
    ]


def owner_of(principal: Principal) -> str:
    """Whose idempotency keys these are."""
    return f"{principal.actor.type}:{principal.actor.id}"


def _rows(principal: Principal, specs: Sequence[TaskSpec]) -> list[dict[str, Any]]:
    lookups = prepare.Lookups(principal)
    rows, problems = [], []
    for index, spec in enumerate(specs):
        try:
            rows.append(prepare.row(lookups, spec))
        except DevosError as error:
            if len(specs) == 1:
                raise
            problems.append({"field": f"tasks[{index}]", "problem": error.message, "details": error.details})
    if problems:
        listed = "; ".join(f"{p['field']}: {p['problem']}" for p in problems[:3])
        raise InvalidInput(
            f"{len(problems)} of {len(specs)} tasks cannot be accepted, none was created. {listed}", problems
        )
    return rows


def _hash(specs: Sequence[TaskSpec]) -> str:
    return hashlib.sha256(jsonsafe.dumps([jsonsafe.clean(spec) for spec in specs]).encode()).hexdigest()


def _earlier(principal: Principal, key: str, request_hash: str) -> list[Submitted] | None:
    """What this key created before, or None. An expired key is forgotten."""
    mine = IdempotencyKey.objects.filter(
        organization_id=principal.organization_id, owner=owner_of(principal), key=key
    ).extra(select={"expired": "expires_at <= now()"})
    kept = mine.first()
    if kept is None:
        return None
    if kept.expired:
        mine.filter(pk=kept.pk).delete()
        return None
    if kept.request_hash != request_hash:
        raise Conflict(
            f"The Idempotency-Key {key[:80]!r} was used for another request. Use a new key for new work.",
            [{"field": "Idempotency-Key", "problem": "used with other content"}],
        )
    statuses = dict(Job.objects.filter(id__in=[job for _, job in kept.task_ids]).values_list("id", "task__status"))
    return [
        Submitted(task_id=UUID(task), job_id=UUID(job), status=statuses.get(UUID(job), "completed"), replayed=True)
        for task, job in kept.task_ids
    ]
