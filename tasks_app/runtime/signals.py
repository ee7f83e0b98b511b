"""Messages over Redis that make things quick and are never the truth: cancel requests and "this task changed"."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import redis
import structlog
from django.conf import settings

log = structlog.get_logger()

SIGNALS = "devos:signals"


def task_channel(task_id: str) -> str:
    """The channel on which changes of one task are told."""
    return f"devos:task:{task_id}"


def connect(**options: Any) -> redis.Redis:
    """A Redis client with short timeouts: Redis may be away, and nobody should wait for it."""
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=1, **options)


@cache
def client() -> redis.Redis:
    """The process's Redis client."""
    return connect()


def send(channel: str, message: dict[str, Any]) -> None:
    """Publish, best effort: the database says the same a little later."""
    try:
        client().publish(channel, json.dumps(message))
    except redis.RedisError as error:
        log.debug("signals.not_sent", channel=channel, error=str(error))


def listen(channel: str, stopped: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """Yield messages of a channel until ``stopped()``. Raises redis.RedisError when the connection breaks."""
    with client().pubsub(ignore_subscribe_messages=True) as subscription:
        subscription.subscribe(channel)
        while not stopped():
            message = subscription.get_message(timeout=1.0)
            if message:
                yield json.loads(message["data"])
