"""What the stack raises when it cannot go on. The message says what is wrong and what to do."""

from __future__ import annotations


class StackError(Exception):
    """The stack cannot start or go on; the text is meant for the person at the terminal."""


class StopRequestedError(Exception):
    """Somebody asked the supervisor to stop while it was still starting."""
