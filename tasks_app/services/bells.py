"""Ringing for work after a commit. A bell says only "there is work on this queue"; losing one loses nothing."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Protocol

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string


class Bells(Protocol):
    """What rings: `runtime.queue_celery.CeleryBells` in production."""

    def ring(self, queue: str) -> None:
        """Tell one idle process that ``queue`` has work. Never raises, never blocks for long."""

    def signal(self, execution_ids: list[str], kind: str) -> None:
        """Tell the workers that run these executions to cancel them. Best effort; the heartbeat is the net."""

    def tell(self, task_id: str, kind: str) -> None:
        """Tell whoever watches a task that it changed. Best effort."""


@cache
def bells() -> Bells:
    """The implementation named in settings; services know only the protocol."""
    return import_string(settings.DEVOS_BELLS)()


def ring_after_commit(queues: Iterable[str], using: str = "default") -> None:
    """Ring once for each queue when the transaction on ``using`` commits; at once when there is none."""
    for queue in sorted(set(queues)):
        transaction.on_commit(lambda queue=queue: bells().ring(queue), using=using)  # type: ignore[misc]
