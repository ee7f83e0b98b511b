"""Waiting inside an action without being deaf: a cancel or pause request ends the wait at once."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_S = 0.05


def wait_until(moment: float, tick: Callable[[], None]) -> None:
    """Wait until ``time.monotonic()`` is ``moment``; ``tick`` is called every 50 ms and ends the wait by raising."""
    while True:
        tick()
        left = moment - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(left, POLL_S))
