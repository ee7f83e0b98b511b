"""Months of events and log lines: a whole partition is dropped, which costs nothing however much is in it."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from django.db import OperationalError, transaction

from tasks_app.maintenance.retention.cutoffs import Cutoffs
from tasks_app.maintenance.retention.live import ALL
from tasks_app.services import sql

log = structlog.get_logger()

PARENTS = ("events", "execution_logs")
_OLD = """
select p.relname, c.relname, greatest(c.reltuples, 0)::bigint
from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
where p.oid in ('events'::regclass, 'execution_logs'::regclass) and c.relname ~ '_[0-9]{4}_[0-9]{2}$'
  and right(c.relname, 7) < %(month)s order by 1, 2
"""
_OF_LIVE = {
    "events": ALL + 'select exists (select 1 from kept join "{part}" e on e.task_id = kept.id)',
    "execution_logs": ALL
    + """select exists (select 1 from kept join jobs j on j.task_id = kept.id join executions x on x.job_id = j.id
      join "{part}" l on l.execution_id = x.id)""",
}
# Whoever writes an event waits behind this lock: better no drop than a queue of writers.
_SOON = "select set_config('lock_timeout', '500ms', true)"


@dataclass(frozen=True)
class Month:
    """A partition that is older than what is kept. ``rows`` is PostgreSQL's estimate."""

    parent: str
    name: str
    rows: int


def old(cutoffs: Cutoffs) -> list[Month]:
    """The partitions that end before the cutoff, oldest first."""
    rows = sql.run(_OLD, {"month": f"{cutoffs.events:%Y_%m}"}, sql.RUNTIME)
    return [Month(*row) for row in rows]


def is_needed(month: Month, cutoffs: Cutoffs) -> bool:
    """Whether a task that is not over, or one of its tree, has rows there."""
    statement = _OF_LIVE[month.parent].replace("{part}", month.name)
    return bool(sql.run(statement, cutoffs.parameters, sql.RUNTIME)[0][0])


def drop_old() -> int:
    """Drop what is old and not needed; returns how many partitions. One that is in use is left for the next time."""
    cutoffs = Cutoffs.now()
    return sum(_drop(month, cutoffs) for month in old(cutoffs))


def _drop(month: Month, cutoffs: Cutoffs) -> bool:
    try:
        with transaction.atomic(using=sql.RUNTIME):
            sql.run(_SOON, {}, sql.RUNTIME)
            if is_needed(month, cutoffs):
                return False
            sql.run(f'drop table if exists "{month.name}"', {}, sql.RUNTIME)
    except OperationalError as error:
        log.info("retention.partition_in_use", partition=month.name, error=str(error))
        return False
    log.info("retention.partition_dropped", partition=month.name, rows=month.rows)
    return True
