"""The cache as a help, never a need. A broker that is down must not take the desk with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.core.cache import cache
from redis.exceptions import RedisError

T = TypeVar("T")


def get_or_make(key: str, kept_s: int, make: Callable[[], T]) -> T:
    """The value kept under ``key``, or a new one that is then kept for ``kept_s`` seconds."""
    try:
        found = cache.get(key)
    except RedisError:
        return make()
    if found is None:
        found = make()
        put(key, found, kept_s)
    return found


def put(key: str, value: object, kept_s: int) -> None:
    """Keep ``value`` for ``kept_s`` seconds, if the cache is there."""
    try:
        cache.set(key, value, kept_s)
    except RedisError:
        pass


def count_up(key: str, within_s: int) -> int:
    """How often this was called with ``key`` within a window of ``within_s`` seconds; 0 when the cache is away."""
    try:
        cache.add(key, 0, within_s)
        return int(cache.incr(key))
    except (RedisError, ValueError):
        return 0
