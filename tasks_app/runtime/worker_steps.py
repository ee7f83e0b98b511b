"""Ties the runtime into a Celery worker: the keeper in its parent, a work loop in each pool process."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from typing import Any
from uuid import UUID

from billiard.process import current_process
from celery import bootsteps
from celery.signals import worker_process_init, worker_shutting_down
from django.conf import settings

from tasks_app.actions import registry
from tasks_app.domain import ids
from tasks_app.runtime import process
from tasks_app.runtime.keeper import Keeper
from tasks_app.runtime.queue_celery import JobEvents, heard
from tasks_app.runtime.slots import SlotTable
from tasks_app.runtime.work_loop import WorkLoop


class _Shared:
    """What the parent makes before it forks, and children inherit."""

    worker_id: UUID
    slots: SlotTable
    keeper: Keeper | None = None
    hostname = ""
    events = False
    each = False


# What Celery needs to end by itself once its pool is idle.
_CELERY_ENDS_WITHIN_S = 5.0

_local = threading.local()
_threads = itertools.count()


class KeeperStep(bootsteps.StartStopStep):
    """Starts the keeper after the pool and stops it before the pool, so that running jobs are handed back in time."""

    requires = {"celery.worker.components:Pool"}

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        registry.load()
        _Shared.worker_id = ids.new_id()
        # All steps are created before the pool starts: children inherit the shared memory.
        _Shared.slots = SlotTable(max(worker.concurrency or 1, getattr(worker, "max_concurrency", 0) or 0))
        _Shared.hostname = worker.hostname
        _Shared.events = bool(worker.task_events)
        _Shared.each = bool(os.environ.get("DEVOS_CLAIM_EACH"))
        self.keeper: Keeper | None = None

    def start(self, worker: Any) -> None:
        queues = sorted(worker.app.amqp.queues.consume_from)
        self.keeper = Keeper(_Shared.worker_id, _Shared.slots, worker.hostname, queues, worker.concurrency or 1)
        self.keeper.start()
        _Shared.keeper = self.keeper

    def stop(self, worker: Any) -> None:
        if self.keeper:
            self.keeper.stop(settings.DEVOS.shutdown_grace_s)

    def terminate(self, worker: Any) -> None:
        if self.keeper:
            self.keeper.stop(0)


@worker_shutting_down.connect
def _on_shutting_down(**kwargs: Any) -> None:
    # Before Celery waits for its pool: work loops end their turn and hand back what they have not begun.
    if hasattr(_Shared, "slots"):
        _Shared.slots.stop()
    if _Shared.keeper:
        threading.Thread(target=_leave_in_time, args=(_Shared.keeper,), daemon=True).start()


def _leave_in_time(keeper: Keeper) -> None:
    """End the process even when Celery does not: without a broker it tries to connect for ever and forgets to stop.

    The keeper has handed everything back by then, so there is nothing left to wait for.
    """
    keeper.stop(settings.DEVOS.shutdown_grace_s)
    time.sleep(_CELERY_ENDS_WITHIN_S)
    os._exit(0)


@worker_process_init.connect
def _on_process_init(**kwargs: Any) -> None:
    os.setpgid(0, 0)  # so that a kill takes along what an action has started
    process.die_with_parent()
    signal.signal(signal.SIGTERM, _on_term)


def _on_term(*_: Any) -> None:
    # Some supervisors send TERM to every process. While a job runs the parent alone decides: raising here would end
    # the job as if its action had failed.
    if not (hasattr(_local, "loop") and _local.loop.busy):
        raise SystemExit(0)


def run_turn(queue: str) -> int:
    """Work on a queue for one turn in this pool process (or thread); returns how many jobs were run."""
    heard(queue)
    return _loop().turn(queue)


def _loop() -> WorkLoop:
    if not hasattr(_local, "loop"):
        index = getattr(current_process(), "index", None)
        slot = next(_threads) if index is None else index
        _Shared.slots.enter(slot)
        watcher = JobEvents(_Shared.hostname) if _Shared.events else None
        _local.loop = WorkLoop(_Shared.worker_id, _Shared.slots, slot, watcher, each=_Shared.each)
    return _local.loop
