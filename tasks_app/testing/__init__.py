"""Helpers for people who write actions."""

from tasks_app.runtime.durable import Snooze
from tasks_app.testing.inline import TIMES_OUT, NothingGiven, RecordingReporter, run_action

__all__ = ["TIMES_OUT", "NothingGiven", "RecordingReporter", "Snooze", "run_action"]
