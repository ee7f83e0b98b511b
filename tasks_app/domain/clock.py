"""The one clock. Everything asks `now()` so that tests can move time; instants are UTC and aware."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime


def _system() -> datetime:
    return datetime.now(UTC)


_source: Callable[[], datetime] = _system


def now() -> datetime:
    """The present instant (UTC, aware)."""
    return _source()


@contextmanager
def using(source: Callable[[], datetime]) -> Iterator[None]:
    """Tell time by ``source`` inside the block."""
    global _source
    before, _source = _source, source
    try:
        yield
    finally:
        _source = before


def shift_s() -> float:
    """Seconds by which a test has moved the clock; 0 in production.

    Leases and timers are judged by the database's clock, which no test can move: statements add this instead.
    """
    return 0.0 if _source is _system else (_source() - _system()).total_seconds()
