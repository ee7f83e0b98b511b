"""The errors of the runtime. Each class carries a ``code``, an HTTP ``status`` and a message that says what to do.

`DevosError` is what a caller of a service may see; `ActionError` is what an action raises about its own work.
"""

from __future__ import annotations

from typing import Any


class DevosError(Exception):
    """Root of every error a service or query raises on purpose."""

    code = "ERROR"
    status = 400

    def __init__(self, message: str, details: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class InvalidInput(DevosError):
    """Input that cannot be accepted. ``details`` is a list of ``{"field", "problem"}``."""

    code = "INVALID_INPUT"


class PayloadTooLarge(DevosError):
    code = "PAYLOAD_TOO_LARGE"
    status = 413


class NotAuthenticated(DevosError):
    code = "NOT_AUTHENTICATED"
    status = 401


class PermissionDenied(DevosError):
    code = "PERMISSION_DENIED"
    status = 403


class NotFound(DevosError):
    """Nothing by this id in the caller's organisation; an id of another organisation looks the same."""

    code = "NOT_FOUND"
    status = 404

    def __init__(self, noun: str, given: object) -> None:
        super().__init__(f"There is no {noun.replace('_', ' ')} {str(given)[:80]!r} here.")


class Conflict(DevosError):
    """The row is in a state in which the verb makes no sense."""

    code = "CONFLICT"
    status = 409


class IllegalTransition(DevosError):
    """A write outside the transition table: a fault in our code, never in the caller's."""

    code = "ILLEGAL_TRANSITION"
    status = 500


class ActionError(Exception):
    """What an action raises when its work failed.

    ``code``: UPPER_SNAKE, stable. ``retryable``: True or False decides; None leaves it to the action's retry policy.
    ``retry_after_s``: seconds the other side asked us to wait. ``details``: JSON for the reader.
    """

    def __init__(
        self,
        code: str,
        message: str,
        retryable: bool | None = None,
        retry_after_s: float | None = None,
        details: Any = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.details = details


class WaitTimeout(ActionError):
    """Raised inside an action when what it waited for did not come in time. Catch it, or the job fails with it."""

    def __init__(self, what: str, timeout_s: float) -> None:
        super().__init__("WAIT_TIMEOUT", f"Waited {timeout_s:g} s for {what}; it did not come.", retryable=False)
