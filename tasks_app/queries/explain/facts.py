"""Everything the reasons are made from, read in a bounded number of statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from tasks_app.actions import registry
from tasks_app.domain import clock, ids
from tasks_app.domain.states import JOB_FINAL, TASK_FINAL, TaskStatus
from tasks_app.models import AuditEntry, DeadLetterJob, Execution, Job, Lease, Queue, Task
from tasks_app.queries import workers as living
from tasks_app.queries.dashboard import read_rows

SYSTEM = "system"  # the queue of the sweeps (domain/queues)
# A task may have very many jobs or children; the first ones tell the story.
JOBS_MAX = 20
CHILDREN_MAX = 5
HOLDERS_MAX = 50
AHEAD_MAX = 1_000
_ANCESTORS_MAX = 1_000

_ANCESTORS = """
with recursive up as (
  select p.id, p.name, p.type, p.status, p.paused_at, p.parent_task_id, 1 as depth
  from tasks t join tasks p on p.id = t.parent_task_id where t.id = %(task)s
  union all
  select p.id, p.name, p.type, p.status, p.paused_at, p.parent_task_id, depth + 1
  from up join tasks p on p.id = up.parent_task_id where depth < %(most)s)
select id, name, type, status, paused_at from up where status = 'paused' order by depth desc
"""
_WORKERS = """
select w.id, w.hostname, w.pid, w.queues, w.concurrency, w.last_seen_at,
  w.stopped_at is null and w.last_seen_at >= %(seen)s as alive,
  (select count(*) from jobs where lease_expires_at is not null and worker_id = w.id) as running
from workers w where w.queues && %(queues)s::varchar[] order by w.last_seen_at desc limit 200
"""
_AHEAD = """
select count(*) as ahead from (
  select 1 from jobs where queue = %(queue)s and status = 'queued'
    and (priority > %(priority)s or (priority = %(priority)s and id < %(id)s)) limit %(most)s) j
"""


@dataclass
class Facts:
    """What is known about a task and what surrounds it."""

    task: Task
    jobs: list[Job]
    now: datetime
    paused_ancestors: list[dict[str, Any]]
    queues: dict[str, Queue]
    workers: list[dict[str, Any]]
    executions: dict[tuple[UUID, int], Execution]
    dead_letters: dict[UUID, DeadLetterJob]
    leases: list[Lease]
    others: dict[UUID, Job]
    children: list[Task] = field(default_factory=list)
    pausers: dict[str, AuditEntry] = field(default_factory=dict)

    def live_workers(self, queue: str) -> list[dict[str, Any]]:
        """Living workers that serve a queue."""
        return [worker for worker in self.workers if worker["alive"] and queue in worker["queues"]]

    def last_seen(self, queue: str) -> datetime | None:
        """When a worker of the queue was seen last."""
        return max((worker["last_seen_at"] for worker in self.workers if queue in worker["queues"]), default=None)

    def execution(self, job: Job) -> Execution | None:
        """The last attempt of a job."""
        return self.executions.get((job.id, job.attempt))

    def holders(self, job: Job) -> list[tuple[Lease, Job | None]]:
        """Who holds the lock or the slots that a job needs."""
        return [(lease, self.others.get(lease.job_id)) for lease in self.leases if lease.key == key_of(job)]

    def ahead(self, job: Job) -> int:
        """How many queued jobs come before this one, counted no further than `AHEAD_MAX`."""
        parameters = {"queue": job.queue_id, "priority": job.priority, "id": job.id, "most": AHEAD_MAX}
        return int(read_rows(_AHEAD, parameters)[0]["ahead"])

    def is_installed(self, action_id: str) -> bool:
        """Whether the plugins of this process bring the action."""
        try:
            registry.get(action_id)
        except registry.ActionNotRegistered:
            return False
        return True


def blocked(job: Job) -> dict[str, Any]:
    """What a waiting job says it waits for."""
    return job.blocked_by if isinstance(job.blocked_by, dict) else {}


def key_of(job: Job) -> str:
    """The key of the lock or the slots a job waits for; empty when it waits for neither."""
    said = blocked(job)
    known = {"lock": job.lock_key, "slot": job.concurrency_key}
    reason = str(said.get("reason"))
    return str(said.get("key") or known[reason] or "") if reason in known else ""


def gather(task: Task, jobs: list[Job] | None = None) -> Facts:
    """Read the facts about a task and its jobs (or these of them): at most ten statements."""
    jobs = _jobs(task) if jobs is None else jobs
    open_jobs = [job for job in jobs if job.status not in JOB_FINAL]
    names = {job.queue_id for job in open_jobs}
    parameters = {"seen": living.seen_since(), "queues": sorted(names | {SYSTEM})}
    ancestors = read_rows(_ANCESTORS, {"task": task.id, "most": _ANCESTORS_MAX}) if task.parent_task_id else []
    facts = Facts(
        task=task,
        jobs=jobs,
        now=clock.now(),
        paused_ancestors=ancestors,
        queues=Queue.objects.in_bulk(sorted(names)) if names else {},
        workers=read_rows(_WORKERS, parameters) if open_jobs else [],
        executions=_executions(open_jobs),
        dead_letters=_dead_letters(task),
        leases=_leases(open_jobs),
        others={},
    )
    facts.others = _others(facts, open_jobs)
    if any(blocked(job).get("reason") == "children" for job in open_jobs):
        facts.children = _children(task)
    itself = [task.id] if task.status == TaskStatus.PAUSED else []
    facts.pausers = _pausers([*(row["id"] for row in ancestors), *itself])
    return facts


def _jobs(task: Task) -> list[Job]:
    """The unfinished jobs of a task, those that run first; of one that is over its failed ones."""
    found = Job.objects.filter(task_id=task.id).defer("input", "output", "checkpoint")
    unfinished = found.exclude(status__in=JOB_FINAL) if task.status not in TASK_FINAL else found.filter(status="failed")
    return sorted(unfinished.order_by("id")[:JOBS_MAX], key=lambda job: (job.status != "running", job.id))


def _dead_letters(task: Task) -> dict[UUID, DeadLetterJob]:
    if task.status != TaskStatus.FAILED:
        return {}
    found = DeadLetterJob.objects.filter(job__task=task.id, status="open")
    return {letter.job_id: letter for letter in found[:JOBS_MAX]}


def _executions(jobs: list[Job]) -> dict[tuple[UUID, int], Execution]:
    wanted = Q()
    for job in jobs:
        if job.attempt:
            wanted |= Q(job_id=job.id, attempt=job.attempt)
    found = Execution.objects.filter(wanted).defer("input", "output") if wanted else []
    return {(row.job_id, row.attempt): row for row in found if row.job_id}


def _leases(jobs: list[Job]) -> list[Lease]:
    keys = {key for job in jobs if (key := key_of(job))}
    return list(Lease.objects.filter(key__in=sorted(keys)).order_by("key", "slot")[:HOLDERS_MAX]) if keys else []


def _others(facts: Facts, jobs: list[Job]) -> dict[UUID, Job]:
    """Jobs that hold leases, and those that must end first."""
    wanted = {lease.job_id for lease in facts.leases} | {one for job in jobs for one in job.after}
    if not wanted:
        return {}
    columns = ("id", "task_id", "organization_id", "action_id", "status", "error", "started_at", "lease_expires_at")
    return {job.id: job for job in Job.objects.filter(id__in=wanted).only(*columns)[:HOLDERS_MAX]}


def _children(task: Task) -> list[Task]:
    unfinished = Task.objects.filter(parent_task_id=task.id).exclude(status__in=TASK_FINAL).order_by("id")
    return list(unfinished.only("id", "name", "type", "status", "created_at")[: CHILDREN_MAX + 1])


def _pausers(task_ids: list[UUID]) -> dict[str, AuditEntry]:
    """Who paused these tasks: the last entry about each."""
    names = [ids.to_text("task", one) for one in task_ids]
    if not names:
        return {}
    found = AuditEntry.objects.filter(object_type="task", object_id__in=names, verb="task.pause").order_by("id")
    return {entry.object_id: entry for entry in found[:HOLDERS_MAX]}
