"""Helpers for people who write actions. See docs/how-to/test-an-action.md."""

from tasks_app.testing.assertions import assert_enqueued
from tasks_app.testing.clocks import FakeClock, fake_clock
from tasks_app.testing.draining import Drained, drain, silent_bells
from tasks_app.testing.inline import RecordingReporter, run_action
from tasks_app.testing.plugins import registered

__all__ = [
    "Drained",
    "FakeClock",
    "RecordingReporter",
    "assert_enqueued",
    "drain",
    "fake_clock",
    "registered",
    "run_action",
    "silent_bells",
]
