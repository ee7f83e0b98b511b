"""The Celery tasks of the runtime: doors without logic. No job is ever in a message."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from celery import shared_task
from django.db import InterfaceError, OperationalError, connections

from tasks_app.maintenance import hourly, probe, retention
from tasks_app.runtime import worker_steps
from tasks_app.runtime.queue_celery import WORK

log = structlog.get_logger()


@shared_task(name=WORK, ignore_result=True)
def work(queue: str) -> None:
    """A bell was heard: work on the queue for a turn."""
    worker_steps.run_turn(queue)


@shared_task(name="devos.probe", ignore_result=True)
def probe_tick() -> None:
    """Beat asks each second what is due."""
    _tick(probe.tick)


@shared_task(name="devos.hourly", ignore_result=True)
def hourly_tick() -> None:
    """Beat's hourly tidy-up."""
    _tick(hourly.tick)


@shared_task(name="devos.retention", ignore_result=True)
def retention_tick() -> None:
    """Beat asks each minute for a part of what is to be deleted."""
    _tick(retention.tick)


def _tick(work: Callable[[], object]) -> None:
    try:
        work()
    except (OperationalError, InterfaceError) as error:
        # The database is away. Celery keeps connections between tasks: without this the next tick meets the dead ones.
        log.warning("tick.database_away", error=str(error))
        connections.close_all()


@shared_task(name="devos.bench_noop", ignore_result=True)
def bench_noop() -> None:
    """A plain Celery task that does nothing: what `devos bench` compares the runtime with."""
