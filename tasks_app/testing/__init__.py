"""Helpers for people who write actions. See docs/how-to/test-an-action.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tasks_app.runtime.durable import Snooze
from tasks_app.testing.clocks import FakeClock, fake_clock
from tasks_app.testing.inline import TIMES_OUT, NothingGiven, RecordingReporter, run_action
from tasks_app.testing.plugins import registered

if TYPE_CHECKING:
    from tasks_app.testing.assertions import assert_enqueued
    from tasks_app.testing.draining import Drained, drain, silent_bells

__all__ = [
    "TIMES_OUT",
    "Drained",
    "FakeClock",
    "NothingGiven",
    "RecordingReporter",
    "Snooze",
    "assert_enqueued",
    "drain",
    "fake_clock",
    "registered",
    "run_action",
    "silent_bells",
]


def __getattr__(name: str) -> Any:
    """What needs the tables comes when it is asked for: `run_action` must work where Django is not set up."""
    from importlib import import_module

    modules = {"assert_enqueued": "assertions", "Drained": "draining", "drain": "draining", "silent_bells": "draining"}
    if name in modules:
        return getattr(import_module(f"{__name__}.{modules[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
