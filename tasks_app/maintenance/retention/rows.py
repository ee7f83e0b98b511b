"""Single old rows: attempts of sync mode, which have no task, and what lies outside of the months' partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from tasks_app.maintenance.retention.cutoffs import EXPIRED, Cutoffs
from tasks_app.maintenance.retention.live import among
from tasks_app.maintenance.retention.trees import NO_UUID
from tasks_app.maintenance.retention.walks import Batch
from tasks_app.services import sql

# Events are append-only; the trigger lets only this through (migration 0004).
_ALLOW = "select set_config('devos.retention', 'on', true)"


@dataclass(frozen=True)
class Rows:
    """Rows of one table. ``due``: the condition on the row ``t``; ``beyond`` bounds the keys that are looked at."""

    name: str
    table: str
    key: Callable[[str], UUID | int]
    first: str
    due: str
    beyond: str = "true"
    before: str = ""

    def batch(self, place: str, cutoffs: Cutoffs) -> Batch:
        """Delete what is due among the next rows."""
        ids = self._next(place, cutoffs)
        sql.run(_ALLOW, {}, sql.RUNTIME)
        deleted = self._run("delete", ids, cutoffs)
        return Batch(deleted, str(ids[-1]) if ids else place, len(ids) < settings.DEVOS.retention_batch)

    def count(self, cutoffs: Cutoffs) -> int:
        """How many rows are due, counted a batch at a time."""
        found, place = 0, ""
        while ids := self._next(place, cutoffs):
            found += self._run("select 1", ids, cutoffs)
            place = str(ids[-1])
        return found

    def _next(self, place: str, cutoffs: Cutoffs) -> list[UUID | int]:
        statement = f"select id from {self.table} where id > %(place)s and {self.beyond} order by id limit %(limit)s"
        limit = settings.DEVOS.retention_batch
        parameters = {**cutoffs.parameters, "place": self.key(place or self.first), "limit": limit}
        return [row[0] for row in sql.run(statement, parameters, sql.RUNTIME)]

    def _run(self, verb: str, ids: list[UUID | int], cutoffs: Cutoffs) -> int:
        if not ids:
            return 0
        statement = f"{self.before} {verb} from {self.table} t where t.id = any(%(ids)s) and {self.due}"
        if verb == "delete":
            statement += " returning 1"
        return len(sql.run(statement, {**cutoffs.parameters, "ids": ids}, sql.RUNTIME))


SYNC_RUNS = Rows("sync_runs", "executions", UUID, NO_UUID, f"t.job_id is null and {EXPIRED}", "id < %(bound)s")
STRAY_EVENTS = Rows(
    "stray_events",
    "events_default",
    UUID,
    NO_UUID,
    "t.timestamp < %(events)s and not exists (select 1 from kept where kept.id = t.task_id)",
    before=among("select distinct task_id as id from events_default where id = any(%(ids)s)"),
)
STRAY_LOGS = Rows(
    "stray_logs",
    "execution_logs_default",
    int,
    "0",
    """t.timestamp < %(events)s
      and not exists (select 1 from executions x join kept on kept.id = x.task_id where x.id = t.execution_id)""",
    before=among(
        "select distinct x.task_id as id from execution_logs_default l join executions x on x.id = l.execution_id "
        "where l.id = any(%(ids)s)"
    ),
)
