"""Reading log lines: what actions wrote, and what the platform itself has to say about a task."""

from __future__ import annotations

import heapq
import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Literal
from uuid import UUID

from django.db import connection
from pydantic import Field

from tasks_app.domain.errors import InvalidInput
from tasks_app.domain.principal import Principal
from tasks_app.models import Execution, ExecutionLog, TaskLog
from tasks_app.queries import executions, tasks
from tasks_app.queries.paging import ListQuery, Page, keyset, read_cursor, write_cursor

Level = Literal["debug", "info", "warn", "error"]


class LogQuery(ListQuery):
    """Log lines, oldest first."""

    noun: ClassVar[str] = "log"

    level: list[Level] = Field([], max_length=4, description="One or more, repeated or separated by commas.")


@dataclass(frozen=True)
class Line:
    """``execution_id`` is None for a line of the platform. ``id`` orders the lines of one source."""

    id: int
    execution_id: UUID | None
    level: str
    message: str
    metadata: Any
    timestamp: datetime


@dataclass(frozen=True)
class Position:
    """How far somebody has read the lines of a task: the last id of each source."""

    platform: int = 0
    actions: int = 0

    def past(self, line: Line) -> Position:
        """The position of somebody who has read ``line`` too."""
        return replace(self, **{"platform" if line.execution_id is None else "actions": line.id})


_OF_TASK = """
select source, id, execution_id, level, message, metadata, timestamp from (
  select 0 as source, l.id, null::uuid as execution_id, l.level, l.message, l.metadata, l.timestamp
  from task_logs l where l.task_id = %(task)s
  union all
  select 1, l.id, l.execution_id, l.level, l.message, l.metadata, l.timestamp
  from execution_logs l
  where l.execution_id in (select e.id from executions e join jobs j on j.id = e.job_id where j.task_id = %(task)s)
) lines
where (%(levels)s::text[] is null or level = any(%(levels)s::text[]))
  and (timestamp, source, id) > (%(time)s::timestamptz, %(source)s::int, %(id)s::bigint)
order by timestamp, source, id limit %(limit)s
"""


def of_execution(principal: Principal, execution_id: UUID, query: LogQuery) -> Page[Line]:
    """A page of what one execution wrote."""
    executions.get(principal, execution_id)
    found = ExecutionLog.objects.filter(execution_id=execution_id)
    if query.level:
        found = found.filter(level__in=query.level)
    page = keyset(found, query, descending=False)
    return Page([_line(row) for row in page.rows], page.next)


def last_of_execution(execution: Execution, limit: int = 50) -> list[Line]:
    """The last lines of an execution the caller has read already, oldest first."""
    found = ExecutionLog.objects.filter(execution_id=execution.id).order_by("-id")[:limit]
    return [_line(row) for row in reversed(found)]


def of_task(principal: Principal, task_id: UUID, query: LogQuery) -> Page[Line]:
    """A page of everything that was written about a task, merged by time."""
    tasks.exists(principal, task_id)
    time, source, last = _merged_position(query)
    parameters = {
        "task": task_id,
        "levels": query.level or None,
        "time": time,
        "source": source,
        "id": last,
        "limit": query.limit + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(_OF_TASK, parameters)
        rows = cursor.fetchall()
    lines = [(row[0], Line(row[1], row[2], row[3], row[4], _json(row[5]), row[6])) for row in rows[: query.limit]]
    more = None
    if len(rows) > query.limit:
        source, line = lines[-1]
        more = write_cursor("log.merged", f"{line.timestamp.isoformat()}|{source}|{line.id}")
    return Page([line for _, line in lines], more)


def after(task_id: UUID, position: Position, limit: int = 500) -> list[Line]:
    """The next lines of a task for a live reader who has checked the caller. Each source keeps its order."""
    platform = TaskLog.objects.filter(task_id=task_id, id__gt=position.platform).order_by("id")[:limit]
    of_task = Execution.objects.filter(executions.of_task(task_id)).values("id")
    actions = ExecutionLog.objects.filter(execution_id__in=of_task, id__gt=position.actions).order_by("id")[:limit]
    sources = [[_line(row) for row in platform], [_line(row) for row in actions]]
    return list(heapq.merge(*sources, key=lambda line: line.timestamp))[:limit]


def _merged_position(query: LogQuery) -> tuple[datetime | str, int, int]:
    if query.cursor is None:
        return "-infinity", -1, 0
    try:
        time, source, last = str(read_cursor("log.merged", query.cursor)).split("|")
        return datetime.fromisoformat(time), int(source), int(last) if len(last) < 20 else 0
    except ValueError:
        raise InvalidInput(
            "cursor: is not a cursor of this list", [{"field": "cursor", "problem": "unknown"}]
        ) from None


def _line(row: ExecutionLog | TaskLog) -> Line:
    execution_id = row.execution_id if isinstance(row, ExecutionLog) else None
    return Line(row.id, execution_id, row.level, row.message, row.metadata, row.timestamp)


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value
