"""What happened to a task, job or execution, as its page shows it. All of it is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils.dateparse import parse_datetime

from tasks_app.domain import clock, jsonsafe
from tasks_app.models import Event, Execution, Job, Task, TaskLog, Worker
from tasks_app.queries.dashboard import read_rows

ATTEMPTS_SHOWN = 50
JOBS_SHOWN = 50
LOG_LINES_SHOWN = 300
EVENTS_SHOWN = 100


def text(value: str) -> str:
    """A text from a query string that PostgreSQL takes."""
    return jsonsafe.clean_text(value)[:300]


def took(started: datetime | None, ended: datetime | None) -> float | None:
    """Seconds from start to end, or until now; None before the start."""
    return max(0.0, ((ended or clock.now()) - started).total_seconds()) if started else None


# A task has few jobs as a rule, but may have very many: no page reads more than these, and none sorts them all.
_JOBS_OF_TASKS = """
select j.task_id, j.status, j.progress, j.attempt from unnest(%(tasks)s::uuid[]) as t (id)
cross join lateral (select * from jobs where task_id = t.id limit 10) j
"""


def attach_jobs(tasks: Sequence[Task]) -> None:
    """Set ``progress`` (of the first job that reports any) and ``attempts`` on each task: one statement."""
    by_id = {task.id: task for task in tasks}
    for task in tasks:
        task.progress, task.attempts = None, 0  # type: ignore[attr-defined]
    for row in read_rows(_JOBS_OF_TASKS, {"tasks": list(by_id)}) if by_id else ():
        task = by_id[row["task_id"]]
        task.attempts += row["attempt"]  # type: ignore[attr-defined]
        if row["progress"] and task.progress is None:  # type: ignore[attr-defined]
            task.progress = row["progress"]  # type: ignore[attr-defined]


def jobs_of(task_id: UUID) -> list[Job]:
    """The jobs of a task, without their large values; no more than `JOBS_SHOWN`."""
    found = Job.objects.filter(task_id=task_id).defer("input", "output", "checkpoint")
    return sorted(found[:JOBS_SHOWN], key=lambda job: job.id)


def job_ids(task_id: UUID) -> list[UUID]:
    """The ids of the jobs of a task; no more than `JOBS_SHOWN`."""
    return list(Job.objects.filter(task_id=task_id).values_list("id", flat=True)[:JOBS_SHOWN])


def attempts(job_ids: Sequence[UUID]) -> list[Execution]:
    """The newest executions of these jobs, newest first, each with ``worker`` set (or None)."""
    found = Execution.objects.filter(job_id__in=job_ids).defer("input", "output").order_by("-id")
    return with_workers(list(found[:ATTEMPTS_SHOWN]))


def with_workers(executions: list[Execution]) -> list[Execution]:
    """Set ``worker`` on each: one statement."""
    workers = Worker.objects.in_bulk({e.worker_id for e in executions if e.worker_id})
    for execution in executions:
        execution.worker = workers.get(execution.worker_id) if execution.worker_id else None  # type: ignore[attr-defined]
    return executions


def timeline(executions: Sequence[Execution], since: datetime) -> list[dict[str, Any]]:
    """Bars for the attempts, oldest first: ``x`` and ``width`` in per cent of ``since`` to the last end."""
    bars = sorted(executions, key=lambda e: e.id)[-12:]
    if not bars:
        return []
    end = max(e.completed_at or clock.now() for e in bars)
    whole = max((end - since).total_seconds(), 0.001)
    made = []
    for execution in bars:
        begin = execution.started_at or execution.created_at
        x = min(99.0, max(0.0, (begin - since).total_seconds() / whole * 100))
        width = ((execution.completed_at or end) - begin).total_seconds() / whole * 100
        made.append({"execution": execution, "x": round(x, 2), "width": round(min(100 - x, max(0.8, width)), 2)})
    return made


# From the end of each execution's own index range: "where execution_id in (...) order by id desc limit n" may walk the
# whole table backwards instead.
_LAST_LINES = """
select l.* from unnest(%(executions)s::uuid[]) as e (id) cross join lateral (
  select id, execution_id, level, message, metadata, timestamp from execution_logs where execution_id = e.id
  order by id desc limit %(limit)s) l
order by l.id desc limit %(limit)s
"""


def logs(executions: Sequence[Execution], task_id: UUID | None = None) -> dict[str, Any]:
    """The last lines of these executions, and of the platform about the task, by time."""
    attempt_of = {e.id: f"#{e.attempt}" for e in executions}
    found = read_rows(_LAST_LINES, {"executions": list(attempt_of), "limit": LOG_LINES_SHOWN + 1}) if executions else []
    more = len(found) > LOG_LINES_SHOWN
    if task_id:
        newest = TaskLog.objects.filter(task_id=task_id).order_by("-id")
        fields = ("id", "level", "message", "metadata", "timestamp")
        found += [dict(line) for line in newest.values(*fields)[:LOG_LINES_SHOWN]]
    found.sort(key=lambda line: (line["timestamp"], line["id"]))
    for line in found:
        line["message"] = jsonsafe.clean_text(line["message"])
        line["source"] = attempt_of.get(line["execution_id"], "") if "execution_id" in line else "platform"
    dropped = sum(e.log_lines_dropped for e in executions)
    return {"lines": found[-LOG_LINES_SHOWN:], "more_lines": more, "dropped": dropped}


def events(**which: UUID) -> list[Event]:
    """The newest events of a task, newest first."""
    found = Event.objects.filter(**which).order_by("-sequence")[:EVENTS_SHOWN]
    return list(found)


_WHY = {
    "time": "It was asked to start later.",
    "retry": "It failed and is tried again after a pause.",
    "handed_back": "Its worker stopped and handed it back.",
    "paused": "It is paused.",
    "dependency": "It waits for another job.",
    "lock": "Another job holds the lock it needs.",
    "slot": "All concurrency slots are taken.",
    "sleep": "It sleeps.",
    "snooze": "It asked to be run again later.",
    "event": "It waits for an event.",
    "approval": "It waits for somebody's decision.",
    "children": "It waits for the tasks it has spawned.",
}


def why_waiting(job: Job) -> dict[str, Any]:
    """Why a job waits, from what it says itself: ``{"text", "until", "rest"}``."""
    blocked = job.blocked_by if isinstance(job.blocked_by, dict) else {}
    reason = str(blocked.get("reason", "unknown"))
    until = blocked.get("until")
    moment = job.available_at if job.available_at and job.available_at > clock.now() else None
    if isinstance(until, str):
        try:
            moment = parse_datetime(until) or moment
        except ValueError:
            pass
    known = _WHY.get(reason, f"It waits: {reason.replace('_', ' ')}.")
    rest = {key: value for key, value in blocked.items() if key not in {"reason", "until", "wait"}}
    return {"text": known, "until": moment, "rest": rest, "job": job}


def recent(moment: datetime | None, within: timedelta) -> bool:
    """Whether ``moment`` is no longer ago than ``within``."""
    return moment is not None and clock.now() - moment <= within
