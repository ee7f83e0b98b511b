"""Run what is queued to the end, in the test's own process, through the real claim, executor and finish."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db.models import QuerySet
from django.test import override_settings

from tasks_app.domain import ids
from tasks_app.domain.states import JobStatus
from tasks_app.maintenance import probe
from tasks_app.models import Job
from tasks_app.runtime.slots import SlotTable
from tasks_app.runtime.work_loop import WorkLoop
from tasks_app.services import bells, sql, workers
from tasks_app.testing.clocks import FakeClock

# Jobs that are readied and cannot be taken, over and over, wait for something that will not happen here.
_IDLE_MAX = 50


class SilentBells:
    """Nobody is there to hear a bell: the test itself works."""

    def ring(self, queue: str) -> None:
        """Nothing."""

    def signal(self, execution_ids: list[str], kind: str) -> None:
        """Nothing."""

    def tell(self, task_id: str, kind: str) -> None:
        """Nothing."""


@dataclass
class Drained:
    """What `drain` did: jobs run, and those that still wait (for later, without a clock, or for something else)."""

    jobs_run: int = 0
    waiting: list[Job] = field(default_factory=list)


def drain(*queues: str, clock: FakeClock | None = None, most: int = 1_000) -> Drained:
    """Run queued jobs and those they lead to, until nothing is left that could run.

    ``queues``: only these (all when left out). With a ``clock`` that is in use, time moves to each delayed job and
    retry in turn, so they run too. ``most``: AssertionError after so many jobs, for work that never ends. A test that
    drains needs ``@pytest.mark.django_db(transaction=True, databases=["default", "runtime"])``: jobs run on a
    connection that sees only what is committed.
    """
    done, idle = Drained(), 0
    with _worker() as loop:
        while idle < _IDLE_MAX:
            ready = _ready(queues)
            if not ready and not _wait(queues, clock):
                break
            ran = sum(loop.turn(queue) for queue in ready)
            idle = 0 if ran else idle + 1
            done.jobs_run += ran
            if done.jobs_run > most:
                raise AssertionError(f"more than {most} jobs were run and there are still some: does this ever end?")
    done.waiting = list(_jobs(queues).filter(status__in=[JobStatus.PENDING, JobStatus.RETRYING]).order_by("id"))
    return done


@contextmanager
def _worker() -> Iterator[WorkLoop]:
    """A pool process's work loop with a worker's row, and bells that do not ring."""
    loop = WorkLoop(ids.new_id(), SlotTable(1), 0)
    workers.register(loop.worker_id, "test", os.getpid(), [], 1)
    with silent_bells():
        try:
            yield loop
        finally:
            workers.stopped(loop.worker_id)


@contextmanager
def silent_bells() -> Iterator[None]:
    """Nothing is sent to Redis in the block: a test that submits needs no broker."""
    with override_settings(DEVOS_BELLS=f"{SilentBells.__module__}.{SilentBells.__qualname__}"):
        bells.bells.cache_clear()
        try:
            yield
        finally:
            bells.bells.cache_clear()


def _jobs(queues: tuple[str, ...]) -> QuerySet[Job]:
    found = Job.objects.using(sql.RUNTIME)
    return found.filter(queue_id__in=queues) if queues else found.all()


def _ready(queues: tuple[str, ...]) -> list[str]:
    """Queues that hold something to claim, in no particular order; paused ones hold nothing."""
    found = _jobs(queues).filter(status=JobStatus.QUEUED, queue__paused_at__isnull=True)
    return sorted(set(found.values_list("queue_id", flat=True)))


def _wait(queues: tuple[str, ...], clock: FakeClock | None) -> bool:
    """Let the sweeps do what is due; with a clock, move to the next moment something is. False: nothing will change."""
    if sum(probe.tick().values()):
        return True
    waiting = _jobs(queues).filter(status__in=[JobStatus.PENDING, JobStatus.RETRYING])
    following = waiting.order_by("available_at").values_list("available_at", flat=True).first()
    if clock is None or following is None:
        return False
    clock.move_to(following)
    clock.advance(0.001)
    return bool(sum(probe.tick().values()))
