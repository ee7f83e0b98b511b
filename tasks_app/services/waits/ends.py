"""What ends a wait: an event, the end of children, the deadline, the end of its job. Each a compare and set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tasks_app.domain import clock, jsonsafe, waits
from tasks_app.models import Event
from tasks_app.services import sql

# What is over is known to its job at once; a sweep looks when the process that should have said so died.
_CHECK = "check_at = now() + interval '2 s'"

# The first event since the task was created that fits and that no wait of this job has had. With a key and without it
# are two searches: each has an index of its own.
_EARLY = """
    (select e.* from events e
    where e.organization_id = s.organization_id and {key}
      and (e.type = s.pattern or (s.pattern like '%%*' and starts_with(e.type, rtrim(s.pattern, '*'))))
      and e.sequence > coalesce((select sequence from events where id = t.id), 0)
      and e.timestamp >= t.created_at - interval '1 hour' and e.timestamp <= s.deadline_at
      and not exists (select 1 from job_steps o where o.job_id = s.job_id and o.event_id = e.id)
    order by e.sequence limit 1)
"""
_EARLY_EVENTS = sql.statement(f"""
with c as materialized (
  select s.id, e.event, e.document from job_steps s
  join jobs j on j.id = s.job_id
  join tasks t on t.id = j.task_id
  cross join lateral (
    select e.id as event, jsonb_build_object('id', e.id, 'type', e.type, 'key', e.key, 'data', e.data,
      'resource_type', e.resource_type, 'resource_id', e.resource_id, 'timestamp', e.timestamp) as document
    from ({_EARLY.format(key="s.key <> '' and e.key = s.key and e.key <> ''")}
      union all {_EARLY.format(key="s.key = '' and e.key is not null")}) e) e
  where s.id = any(%(steps)s) and s.kind = 'event' and s.state = 'open' order by s.id for update of s)
update job_steps s set state = 'done', output = c.document, event_id = c.event, resolved_at = now(), {_CHECK}
from c where s.id = c.id and s.state = 'open' returning s.job_id
""")

_MATCH = """
with c as materialized (
  select s.id from job_steps s
  where s.kind = 'event' and s.state = 'open' and s.organization_id = %(org)s and s.pattern = any(%(patterns)s)
    and s.key = any(%(keys)s) and s.deadline_at > now() + %(shift_s)s * interval '1 s'
    and not exists (select 1 from job_steps o where o.job_id = s.job_id and o.event_id = %(event)s)
  order by s.id for update of s {locked})
update job_steps s set state = 'done', output = %(document)s::jsonb, event_id = %(event)s, resolved_at = now(), {check}
from c where s.id = c.id and s.state = 'open' returning s.job_id
"""
_MATCH_NOW = sql.statement(_MATCH.format(locked="", check=_CHECK))
_MATCH_UNLOCKED = sql.statement(_MATCH.format(locked="skip locked", check=_CHECK))

_CHILDREN = """
update job_steps s set state = 'done', resolved_at = now(), {check}
where s.id = any({steps}) and s.kind = 'children' and s.state = 'open' and not exists (
  select 1 from unnest(s.children) as child(id) join tasks t on t.id = child.id
  where t.status not in ('completed', 'failed', 'cancelled'))
returning s.job_id
"""
_CHILDREN_OF_STEPS = sql.statement(_CHILDREN.format(steps="%(steps)s", check=_CHECK))
_CHILDREN_OF_PARENTS = sql.statement(
    _CHILDREN.format(
        steps="array(select w.id from jobs j join job_steps w on w.job_id = j.id where j.task_id = any(%(parents)s))",
        check=_CHECK,
    )
)

_EXPIRE = sql.statement(f"""
with s as (
  update job_steps s set state = case kind when 'sleep' then 'done' else 'timed_out' end, resolved_at = now(), {_CHECK}
  where s.id = any(%(steps)s) and s.state = 'open' and s.deadline_at <= now() + %(shift_s)s * interval '1 s'
  returning s.id, s.job_id),
a as (
  update approvals a set status = 'expired', decided_at = now() from s where a.step_id = s.id and a.status = 'open')
select job_id from s
""")

_CLOSE = sql.statement("""
with s as (
  update job_steps s set state = case state when 'open' then 'cancelled' else state end, check_at = null,
    resolved_at = coalesce(resolved_at, now())
  where s.job_id = any(%(jobs)s) and s.check_at is not null
  returning s.id)
update approvals a set status = 'cancelled', decided_at = now() from s where a.step_id = s.id and a.status = 'open'
""")


def by_early_events(steps: Sequence[int]) -> list[UUID]:
    """End those waits for which a fitting event is there already; the jobs of the waits that ended."""
    return _jobs(sql.run(_EARLY_EVENTS, {"steps": list(steps)}, sql.RUNTIME))


def by_event(event: Event, using: str, *, wait_for_locks: bool) -> list[UUID]:
    """End the open waits that ``event`` fits; their jobs.

    Without ``wait_for_locks`` those that another transaction holds are left out: a caller's transaction must not be
    drawn into a deadlock. They are looked at again after its commit.
    """
    document = {
        "id": str(event.id),
        "type": event.type,
        "key": event.key,
        "data": event.data,
        "resource_type": event.resource_type,
        "resource_id": event.resource_id,
        "timestamp": event.timestamp.isoformat(),
    }
    parameters = {
        "org": event.organization_id,
        "patterns": waits.patterns_for(event.type),
        "keys": ["", event.key] if event.key else [""],
        "event": event.id,
        "document": jsonsafe.dumps(document),
        "shift_s": clock.shift_s(),
    }
    return _jobs(sql.run(_MATCH_NOW if wait_for_locks else _MATCH_UNLOCKED, parameters, using))


def by_children(steps: Sequence[int]) -> list[UUID]:
    """End those waits of which every child has ended or is gone; their jobs."""
    return _jobs(sql.run(_CHILDREN_OF_STEPS, {"steps": list(steps)}, sql.RUNTIME))


def by_children_of(parents: Sequence[UUID]) -> list[UUID]:
    """As `by_children`, for whatever the jobs of these tasks wait for."""
    return _jobs(sql.run(_CHILDREN_OF_PARENTS, {"parents": list(parents)}, sql.RUNTIME))


def by_deadline(steps: Sequence[int]) -> list[UUID]:
    """End those waits whose deadline has passed, with their approvals; their jobs."""
    return _jobs(sql.run(_EXPIRE, {"steps": list(steps), "shift_s": clock.shift_s()}, sql.RUNTIME))


def with_jobs(jobs: Sequence[UUID], using: str) -> None:
    """Cancel what jobs wait for that are over, with their approvals."""
    sql.run(_CLOSE, {"jobs": list(jobs)}, using)


def _jobs(rows: list[tuple[Any, ...]]) -> list[UUID]:
    return [job for (job,) in rows]
