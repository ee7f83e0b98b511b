"""Waiting in tests: poll with a deadline, never sleep and hope."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], timeout_s: float, what: str, every_s: float = 0.05) -> T:
    """Poll until ``condition`` gives something true and return it; AssertionError naming ``what`` otherwise."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(every_s)
