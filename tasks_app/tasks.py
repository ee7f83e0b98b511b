"""The Celery tasks of the runtime: doors without logic. No job is ever in a message."""

from __future__ import annotations

from celery import shared_task

from tasks_app.maintenance import hourly, probe
from tasks_app.runtime import worker_steps
from tasks_app.runtime.queue_celery import WORK


@shared_task(name=WORK, ignore_result=True)
def work(queue: str) -> None:
    """A bell was heard: work on the queue for a turn."""
    worker_steps.run_turn(queue)


@shared_task(name="devos.probe", ignore_result=True)
def probe_tick() -> None:
    """Beat asks each second what is due."""
    probe.tick()


@shared_task(name="devos.hourly", ignore_result=True)
def hourly_tick() -> None:
    """Beat's hourly tidy-up."""
    hourly.tick()


@shared_task(name="devos.bench_noop", ignore_result=True)
def bench_noop() -> None:
    """A plain Celery task that does nothing: what `devos bench` compares the runtime with."""
