"""Helpers for people who write actions."""

from tasks_app.testing.inline import RecordingReporter, run_action

__all__ = ["RecordingReporter", "run_action"]
