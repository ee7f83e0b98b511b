"""Bells over Celery. Postgres is the queue; a Celery message says only that a queue has work."""

from __future__ import annotations

import os
import threading
import time
from functools import cache

import redis
import structlog
from celery import Celery
from django.conf import settings
from django.utils.module_loading import import_string
from kombu.exceptions import OperationalError

from tasks_app.domain import faultpoints, ids
from tasks_app.domain.outcomes import Failed, Succeeded
from tasks_app.runtime import signals
from tasks_app.services.jobs.claim import Claimed
from tasks_app.services.jobs.finish import Finished

log = structlog.get_logger()

WORK = "devos.work"
# After Redis did not answer, do not make the next callers wait for it as well.
_AWAY_S = 1.0


class CeleryBells:
    """`services.bells.Bells` on Redis and Celery. No method raises, none waits long."""

    def __init__(self) -> None:
        self._away_until = 0.0
        self._local = threading.local()

    def ring(self, queue: str) -> None:
        """Send a bell unless one is on its way and unheard; the relay rings again when this fails."""
        if time.monotonic() < self._away_until:
            return
        try:
            if self._client().set(_key(queue), 1, nx=True, ex=settings.DEVOS.bell_ttl_s):
                _app().send_task(WORK, args=(queue,), queue=queue, ignore_result=True, retry=False)
                faultpoints.reach("ring.after_publish")
        except (redis.RedisError, OperationalError, OSError) as error:
            self._away_until = time.monotonic() + _AWAY_S
            log.warning("bell.not_sent", queue=queue, error=str(error))

    def _client(self) -> redis.Redis:
        """A connection of this thread's own: every submit asks, and a pool's bookkeeping costs as much as that."""
        if getattr(self._local, "pid", None) != os.getpid():
            self._local.client, self._local.pid = signals.connect(single_connection_client=True), os.getpid()
        return self._local.client

    def signal(self, execution_ids: list[str], kind: str) -> None:
        """Tell the workers that run these executions."""
        signals.send(signals.SIGNALS, {"executions": execution_ids, "kind": kind})

    def tell(self, task_id: str, kind: str) -> None:
        """Tell whoever watches the task."""
        signals.send(signals.task_channel(task_id), {"kind": kind})


def heard(queue: str) -> None:
    """The bell of a queue was heard: from now on the next one is sent. Called before the claim, so none gets lost."""
    try:
        signals.client().delete(_key(queue))
    except redis.RedisError as error:
        log.debug("bell.not_cleared", queue=queue, error=str(error))


@cache
def _app() -> Celery:
    """The project's Celery app; named in settings because this app does not know the project."""
    return import_string(settings.DEVOS_CELERY_APP)


def _key(queue: str) -> str:
    return f"devos:bell:{queue}"


class JobEvents:
    """Shows every job to Flower under its action name and job id, in batches, when Celery events are on."""

    def __init__(self, hostname: str) -> None:
        app = _app()
        self._dispatcher = app.events.Dispatcher(
            app.connection_for_write(), hostname=hostname, buffer_group={"task"}, buffer_limit=200
        )

    def started(self, job: Claimed) -> None:
        """A job that is not known to be short begins: worth an event of its own, at once."""
        self._send("task-started", job)
        self.flush()

    def ended(self, job: Claimed, finished: Finished) -> None:
        """A job ended. The event carries name and times too, so that short jobs need no other."""
        if isinstance(finished.outcome, Succeeded):
            self._send("task-succeeded", job, result="", runtime=finished.duration_ms / 1000)
        elif isinstance(finished.outcome, Failed):
            error = finished.outcome.error
            self._send("task-failed", job, exception=f"{error.code}: {error.message}", traceback=error.traceback)
        else:
            self._send("task-revoked", job, terminated=False, signum=None, expired=False)

    def flush(self) -> None:
        """Send what is buffered; Flower missing some is no harm."""
        try:
            self._dispatcher.flush()
        except (redis.RedisError, OperationalError, OSError) as error:
            log.debug("job_events.not_sent", error=str(error))

    def _send(self, type: str, job: Claimed, **fields: object) -> None:
        self._dispatcher.send(
            type,
            uuid=ids.to_text("job", job.attempt.job_id),
            name=job.attempt.action_id,
            args="",
            kwargs=ids.to_text("task", job.attempt.task_id),
            routing_key=job.queue,
            retries=max(job.attempt.counted - 1, 0),
            received=time.time(),
            started=time.time(),
            **fields,
        )
