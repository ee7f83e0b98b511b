"""The three ways to run retention: a little at a time, all of it, or only on paper."""

from __future__ import annotations

from django.conf import settings

from tasks_app.domain import clock
from tasks_app.maintenance.retention import partitions, rows, trees
from tasks_app.maintenance.retention.cutoffs import Cutoffs
from tasks_app.maintenance.retention.walks import AGAIN_AFTER, Walk
from tasks_app.maintenance.sweep import Sweep, run_all
from tasks_app.services import sql

ROWS = (rows.SYNC_RUNS, rows.STRAY_EVENTS, rows.STRAY_LOGS)
WALKS = (Walk("tasks", trees.batch), *(Walk(one.name, one.batch) for one in ROWS))

# Which walks have rows beyond their place, or are to begin again.
_DUE = """
with m as materialized (
  select w.name, m.place, coalesce(m.begun_at <= %(again)s, true) as again
  from unnest(%(names)s::text[]) w(name) left join retention_marks m using (name))
select name from m where again
  or (name = 'tasks' and exists (select 1 from tasks
    where id > coalesce(nullif(place, ''), %(first)s)::uuid and id < %(bound)s))
  or (name = 'sync_runs' and exists (select 1 from executions
    where id > coalesce(nullif(place, ''), %(first)s)::uuid and id < %(bound)s))
  or (name = 'stray_events' and exists (select 1 from events_default
    where id > coalesce(nullif(place, ''), %(first)s)::uuid))
  or (name = 'stray_logs' and exists (select 1 from execution_logs_default
    where id > coalesce(nullif(place, ''), '0')::bigint))
union all
select 'partitions' from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent in ('events'::regclass, 'execution_logs'::regclass) and c.relname ~ '_[0-9]{4}_[0-9]{2}$'
  and right(c.relname, 7) < %(month)s
"""


def tick() -> dict[str, int]:
    """A bounded part of the work; one statement when nothing is due. Returns rows (or partitions) deleted by name."""
    due = _due()
    walks = [walk for walk in WALKS if walk.name in due]
    sweeps = [Sweep("partitions", partitions.drop_old)] if "partitions" in due else []
    seconds = settings.DEVOS.retention_bite_s / max(len(walks), 1)
    for walk in walks:
        sweeps.append(Sweep(walk.name, lambda walk=walk: _bite(walk, seconds)))  # type: ignore[misc]
    return run_all(sweeps)


def _bite(walk: Walk, seconds: float) -> int:
    walk.prepare()
    return walk.bite(seconds)


def _due() -> set[str]:
    cutoffs = Cutoffs.now()
    parameters = {
        "names": [walk.name for walk in WALKS],
        "again": clock.now() - AGAIN_AFTER,
        "first": trees.NO_UUID,
        "bound": cutoffs.newest_id,
        "month": f"{cutoffs.events:%Y_%m}",
    }
    return {name for (name,) in sql.run(_DUE, parameters, sql.RUNTIME)}


def run() -> dict[str, int]:
    """Everything that is due, however long it takes. Safe beside the ticks and beside another run."""
    return {"partitions": partitions.drop_old()} | {walk.name: walk.whole() for walk in WALKS}


def preview() -> dict[str, int]:
    """What `run` would delete now, by name, and the jobs and executions that go with the tasks. Changes nothing."""
    cutoffs = Cutoffs.now()
    counts = {"partitions": 0, "partition_rows": 0}
    for month in partitions.old(cutoffs):
        if not partitions.is_needed(month, cutoffs):
            counts["partitions"] += 1
            counts["partition_rows"] += month.rows
    return counts | trees.count(cutoffs) | {one.name: one.count(cutoffs) for one in ROWS}
