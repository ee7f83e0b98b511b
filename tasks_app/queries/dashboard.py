"""The numbers of the operator's dashboard. Every statement is bounded: by time, by an index, or by a limit.

Nothing here counts a big table. Executions are found by id: ids are UUIDv7, so "since ten o'clock" is a range of the
index every list uses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from tasks_app.domain import clock, ids

MINUTES = 60
# Executions that started this long before the hour shown and ended inside it are counted too.
START_MARGIN = timedelta(hours=1)
SAMPLE_MAX = 25_000
BACKLOG_MAX = 100_000
OPEN_MAX = 10_000
ROWS_MAX = 8
_JSONB = 3802  # PostgreSQL's type number


def first_id_at(moment: datetime) -> UUID:
    """The smallest id that could have been made at ``moment`` (aware): a bound for ``id >= ...``."""
    milliseconds = max(0, int(moment.timestamp() * 1000))
    return UUID(int=(milliseconds & ((1 << 48) - 1)) << 80)


@dataclass(frozen=True, slots=True)
class Scope:
    """The organisations whose numbers are shown; None is all of them."""

    organization_ids: list[UUID] | None

    def sql(self) -> str:
        """A condition on ``organization_id``, with the parameter ``orgs`` (or ``org`` for exactly one)."""
        if self.organization_ids is None:
            return "true"
        return "organization_id = %(org)s" if len(self.organization_ids) == 1 else "organization_id = any(%(orgs)s)"

    def parameters(self) -> dict[str, Any]:
        known = self.organization_ids
        return {} if known is None else {"org": known[0]} if len(known) == 1 else {"orgs": known}


def read_rows(statement: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of a raw statement as dicts, JSON parsed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        columns = cursor.description or ()
        return [{c.name: _value(c.type_code, item) for c, item in zip(columns, row, strict=True)} for row in cursor]


def _value(type_code: int, item: Any) -> Any:
    """Django hands jsonb out as text to raw statements."""
    return json.loads(item) if type_code == _JSONB and isinstance(item, str) else item


RECENT = """
newest as materialized (
  select status, action_id, started_at, completed_at, duration_ms, error ->> 'code' as code
  from executions where {scope} and id >= %(from_id)s order by id desc limit %(sample)s
),
recent as (select * from newest where completed_at >= %(since)s)"""

THROUGHPUT = (
    "with "
    + RECENT
    + """,
per_minute as (
  select date_trunc('minute', completed_at) as minute, count(*) filter (where status = 'completed') as completed,
    count(*) filter (where status in ('failed', 'lost')) as failed
  from recent group by 1
),
failures as (
  select action_id, coalesce(code, status) as code, count(*) as times, max(completed_at) as last_at
  from recent where status in ('failed', 'lost') group by 1, 2 order by times desc, last_at desc limit %(rows)s
),
slowest as (
  select action_id, count(*) as runs, percentile_cont(0.5) within group (order by duration_ms) as p50_ms,
    percentile_cont(0.95) within group (order by duration_ms) as p95_ms, max(duration_ms) as max_ms
  from recent where status = 'completed' and duration_ms is not null group by 1 order by p95_ms desc limit %(rows)s
)
select
  (select coalesce(jsonb_agg(to_jsonb(m) order by m.minute), '[]') from per_minute m) as per_minute,
  (select coalesce(jsonb_agg(to_jsonb(f) order by f.times desc, f.last_at desc), '[]') from failures f) as failures,
  (select coalesce(jsonb_agg(to_jsonb(s) order by s.p95_ms desc), '[]') from slowest s) as slowest,
  (select count(*) from newest) as seen, (select min(started_at) from newest) as oldest
"""
)


def executions_of_last_hour(scope: Scope) -> dict[str, Any]:
    """``{"per_minute": [{minute, completed, failed}], "failures", "slowest", "complete_from"}`` of the last hour.

    Looks at no more than the newest `SAMPLE_MAX` executions. ``complete_from`` is the first minute that is counted to
    its end: later than the first one when there were more.
    """
    since = (clock.now() - timedelta(minutes=MINUTES - 1)).replace(second=0, microsecond=0)
    statement = THROUGHPUT.format(scope=scope.sql())
    found = read_rows(
        statement,
        {
            **scope.parameters(),
            "from_id": first_id_at(since - START_MARGIN),
            "since": since,
            "sample": SAMPLE_MAX,
            "rows": ROWS_MAX,
        },
    )[0]
    by_minute = {datetime.fromisoformat(row["minute"]): row for row in found["per_minute"]}
    minutes = [since + timedelta(minutes=n) for n in range(MINUTES)]
    found["per_minute"] = [
        {
            "minute": minute,
            "completed": by_minute.get(minute, {}).get("completed", 0),
            "failed": by_minute.get(minute, {}).get("failed", 0),
        }
        for minute in minutes
    ]
    seen, oldest = found.pop("seen"), found.pop("oldest")
    # Most executions end soon after they start; the slack covers those.
    cut = seen >= SAMPLE_MAX and oldest is not None
    found["complete_from"] = oldest.replace(second=0, microsecond=0) + timedelta(minutes=2) if cut else since
    for row in found["failures"]:
        row["last_at"] = datetime.fromisoformat(row["last_at"])
    return found


# Depth is counted up to a bound on the ready index. The oldest is looked for among the first of each priority, by a
# loose scan over the same index, so that a backlog of any size costs a few probes.
QUEUES = """
with recursive heads as (
  (select distinct on (q.name) q.name as queue, j.priority
   from queues q cross join lateral (
     select priority from jobs where queue = q.name and status = 'queued' order by priority desc, id limit 1) j)
  union all
  select h.queue, n.priority from heads h cross join lateral (
    select priority from jobs where queue = h.queue and status = 'queued' and priority < h.priority
    order by priority desc, id limit 1) n
),
oldest as (
  select h.queue, min(first.available_at) as since from heads h cross join lateral (
    select available_at from jobs where queue = h.queue and status = 'queued' and priority = h.priority
    order by id limit 20) first
  group by h.queue
),
running as (
  select queue, count(*) as running from jobs where lease_expires_at is not null group by queue
),
waiting as (
  select queue, count(*) as waiting from (
    select queue from jobs where status in ('pending', 'retrying') limit %(open)s) w group by queue
)
select q.name, q.description, q.paused_at, q.paused_by, q.pause_reason, q.paused_until,
  (select count(*) from (select 1 from jobs where queue = q.name and status = 'queued' limit %(backlog)s) b) as depth,
  o.since as oldest_since, coalesce(r.running, 0) as running, coalesce(w.waiting, 0) as waiting
from queues q left join oldest o on o.queue = q.name left join running r on r.queue = q.name
  left join waiting w on w.queue = q.name
order by q.name
"""


def queues() -> list[dict[str, Any]]:
    """Every queue with its depth (bounded by `BACKLOG_MAX`), running and waiting jobs, and its oldest ready job.

    Queues and workers serve all organisations, so these are the numbers of the machine.
    """
    now = clock.now()
    rows = read_rows(QUEUES, {"backlog": BACKLOG_MAX + 1, "open": OPEN_MAX})
    for row in rows:
        row["paused"] = row["paused_at"] is not None and (row["paused_until"] is None or row["paused_until"] > now)
        row["oldest_s"] = max(0.0, (now - row["oldest_since"]).total_seconds()) if row["oldest_since"] else None
        row["depth_text"] = f"{row['depth']:,}" if row["depth"] <= BACKLOG_MAX else f"{BACKLOG_MAX:,}+"
    return rows


WORKERS = """
select w.id, w.hostname, w.pid, w.queues, w.concurrency, w.started_at, w.last_seen_at, w.rss_mb,
  w.restarted_processes, coalesce(r.running, 0) as running, coalesce(r.jobs, '[]') as jobs
from workers w left join lateral (
  select count(*) as running, (jsonb_agg(jsonb_build_object('id', j.id, 'task_id', j.task_id, 'action_id', j.action_id,
    'started_at', j.started_at) order by j.started_at) filter (where {scope}))  as jobs
  from (select * from jobs where lease_expires_at is not null and worker_id = w.id limit 200) j
) r on true
where w.stopped_at is null and w.last_seen_at >= %(alive_since)s
order by w.hostname, w.started_at limit 100
"""


def live_workers(scope: Scope) -> list[dict[str, Any]]:
    """Workers that were seen within a lease, with the jobs they run (only those of the scope are named)."""
    alive_since = clock.now() - timedelta(seconds=settings.DEVOS.lease_s)
    statement = WORKERS.format(scope=scope.sql())
    rows = read_rows(statement, {**scope.parameters(), "alive_since": alive_since})
    for row in rows:
        row["public_id"] = ids.to_text("worker", row["id"])
        for job in row["jobs"]:
            job["started_at"] = datetime.fromisoformat(job["started_at"]) if job["started_at"] else None
    return rows


OPEN = """
select
  (select count(*) from (select 1 from dead_letter_jobs where {scope} and status = 'open' limit %(bound)s) d)
    as dead_letters,
  (select count(*) from (select 1 from approvals where {scope} and status = 'open' limit %(bound)s) a) as approvals,
  (select count(*) from (
    select 1 from executions where {scope} and status = 'failed' and error is not null and id >= %(from_id)s
    limit %(bound)s) f) as failed,
  (select count(*) from (select 1 from tasks where {scope} and status = 'queued' limit %(bound)s) q) as queued,
  (select count(*) from (select 1 from tasks where {scope} and status = 'running' limit %(bound)s) r) as running,
  (select count(*) from (select 1 from tasks where {scope} and status in ('waiting', 'paused') limit %(bound)s) w)
    as waiting
"""


def open_numbers(scope: Scope) -> dict[str, int]:
    """Open dead letters and approvals, executions that failed within the hour, unfinished tasks; up to `OPEN_MAX`."""
    parameters = {
        **scope.parameters(),
        "bound": OPEN_MAX + 1,
        "from_id": first_id_at(clock.now() - timedelta(hours=1)),
    }
    return read_rows(OPEN.format(scope=scope.sql()), parameters)[0]


def snapshot(scope: Scope) -> dict[str, Any]:
    """Everything the dashboard shows, in four statements."""
    hour = executions_of_last_hour(scope)
    return {
        **hour,
        "open": open_numbers(scope),
        "queues": queues(),
        "workers": live_workers(scope),
        "at": clock.now(),
    }
