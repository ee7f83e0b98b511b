"""A clock that tests move. Python and the statements of the sweeps see the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from tasks_app.domain import clock


class FakeClock:
    """Real time, moved by what a test says. It goes on ticking: what takes time still takes it."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def now(self) -> datetime:
        """The present instant (UTC, aware) by this clock."""
        return datetime.now(UTC) + self._ahead

    def advance(self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0) -> datetime:
        """Move ahead and return the new present. Raises ValueError for a way back: nothing that runs expects one."""
        by = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        if by < timedelta():
            raise ValueError("time does not go back")
        self._ahead += by
        return self.now()

    def move_to(self, instant: datetime) -> datetime:
        """Move ahead to an instant; one that has passed already moves nothing."""
        return self.advance(max((instant - self.now()).total_seconds(), 0))


@contextmanager
def fake_clock() -> Iterator[FakeClock]:
    """Everything in the block, and every statement that asks `clock.shift_s`, goes by the clock it gives."""
    fake = FakeClock()
    with clock.using(fake.now):
        yield fake
