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
