"""Reading workers and what they are doing."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import ClassVar
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet
from pydantic import Field

from tasks_app.domain import clock
from tasks_app.domain.principal import Principal
from tasks_app.models import Execution, Job, Worker
from tasks_app.queries.paging import NewestFirst, Page

# What one worker can show: more than the largest pool anybody runs on one machine.
_RUNNING_MAX = 1_000


class WorkerFilter(NewestFirst):
    noun: ClassVar[str] = "worker"

    alive: bool | None = Field(None, description="Only those that are alive, or only those that are not.")

    def narrow(self, principal: Principal) -> QuerySet[Worker]:
        principal.require("workers.read")
        living = Q(stopped_at__isnull=True, last_seen_at__gte=seen_since())
        found = Worker.objects.all()
        return found if self.alive is None else found.filter(living if self.alive else ~living)


def seen_since() -> datetime:
    """A worker that was last seen before this instant has no lease left: it counts as dead."""
    return clock.now() - timedelta(seconds=settings.DEVOS.lease_s)


def page(principal: Principal, query: WorkerFilter) -> Page[tuple[Worker, list[Execution]]]:
    """A page of workers, each with the executions of the caller's organisation that it runs."""
    found: Page[Worker] = query.page(query.narrow(principal))
    running = _running(principal, [worker.id for worker in found.rows])
    return Page([(worker, running[worker.id]) for worker in found.rows], found.next)


def _running(principal: Principal, worker_ids: list[UUID]) -> dict[UUID, list[Execution]]:
    by_worker: dict[UUID, list[Execution]] = defaultdict(list)
    jobs = Job.objects.filter(
        lease_expires_at__isnull=False, worker_id__in=worker_ids, organization_id=principal.organization_id
    )
    executions = Execution.objects.filter(
        job_id__in=jobs.values("id"), status="running", worker_id__in=worker_ids
    ).only("id", "action_id", "job_id", "task_id", "attempt", "started_at", "worker_id")
    for row in executions.order_by("id")[:_RUNNING_MAX]:
        if row.worker_id is not None:
            by_worker[row.worker_id].append(row)
    return by_worker
