"""The executor: a straight pipe of small steps over one attempt, ending in an outcome. It never raises.

load action -> validate input -> check permission -> run inside middleware -> check output
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from pydantic import BaseModel, SecretStr

from tasks_app.actions import registry
from tasks_app.actions.definition import ActionDefinition
from tasks_app.domain import faultpoints, jsonsafe
from tasks_app.domain.errors import ActionError, DevosError, PayloadTooLarge
from tasks_app.domain.masking import MASK
from tasks_app.domain.outcomes import Cancelled as CancelledOutcome
from tasks_app.domain.outcomes import ErrorInfo, Failed, HandedBack, Outcome, Snoozed, Succeeded, Waiting
from tasks_app.domain.retry import RetryPolicy
from tasks_app.runtime.context import Cancelled, Context, HandBack
from tasks_app.runtime.durable import Park
from tasks_app.runtime.error_table import describe
from tasks_app.runtime.middleware import SoftTimeout, clean_database_session, time_limit
from tasks_app.services import principals, secrets

# Shorter "secrets" would mask half of every text.
_SECRET_MIN = 4


@dataclass
class Run:
    """One attempt on its way through the pipe."""

    context: Context
    action_id: str
    raw_input: Any
    organization_id: Any
    action: ActionDefinition | None = None
    input: BaseModel | None = None
    output: Any = None
    secret_values: list[str] = field(default_factory=list)

    @property
    def policy(self) -> RetryPolicy:
        return self.action.retry if self.action else RetryPolicy()


def execute(run: Run) -> Outcome:
    """Run the attempt to its outcome."""
    try:
        for step in PIPE:
            step(run)
        return Succeeded(run.output)
    except BaseException as error:  # noqa: BLE001 - foreign code: whatever it raises is an outcome, also SystemExit
        return _outcome_of(run, error)


def _load(run: Run) -> None:
    run.action = registry.get(run.action_id)


def _validate(run: Run) -> None:
    run.input = _action(run).parse_input(secrets.unseal(run.raw_input))
    run.secret_values = _secrets_in(run.input)
    run.context.redact = redactor(run.secret_values)


def _permit(run: Run) -> None:
    action = _action(run)
    principal = principals.of_actor(run.context.actor, run.organization_id)
    principal.require(action.permission, dangerous=action.dangerous)


def _call(run: Run) -> None:
    action = _action(run)
    run.context.raise_if_cancelled()
    with time_limit(action.timeout_s), clean_database_session():
        faultpoints.reach("action.running")
        run.output = action(run.context, run.input)
        if run.context.parked is not None:
            raise run.context.parked
        faultpoints.reach("action.after_effect")


def _check_output(run: Run) -> None:
    model, output = _action(run).output_model, run.output
    if model is not None and not isinstance(output, model):
        output = model.model_validate(output)
    if output is None:
        return
    # Work that is done must not be lost over a character: what cannot be stored is replaced, not refused.
    cleaned = jsonsafe.clean(output, settings.DEVOS.json_depth_max)
    if run.secret_values:
        cleaned = run.context.redact(cleaned)
    size = len(jsonsafe.dumps(cleaned).encode())
    if size > settings.DEVOS.output_bytes_max:
        limit = settings.DEVOS.output_bytes_max
        raise PayloadTooLarge(f"The output has {size} bytes as JSON, the limit is {limit}. Store it and return where.")
    run.output = cleaned


PIPE: tuple[Callable[[Run], None], ...] = (_load, _validate, _permit, _call, _check_output)


def _action(run: Run) -> ActionDefinition:
    if run.action is None:
        raise registry.ActionNotRegistered(run.action_id)
    return run.action


def _outcome_of(run: Run, error: BaseException) -> Outcome:
    if (stopped := run.context.parked) is not None and not isinstance(error, Cancelled | SoftTimeout | HandBack):
        # Also when the action caught it and raised something else: the wait is begun, and nothing after it was done.
        return Waiting(stopped.delay_s, stopped.blocked_by) if isinstance(stopped, Park) else Snoozed(stopped.delay_s)
    if isinstance(error, HandBack):
        return HandedBack(error.checkpoint)
    if isinstance(error, Cancelled):
        return CancelledOutcome("Cancelled on request.")
    if isinstance(error, SoftTimeout):
        seconds = run.action.timeout_s if run.action else 0
        return Failed(ErrorInfo("TIMEOUT", f"Ran longer than its limit of {seconds:g} s."), run.policy)
    if isinstance(error, registry.ActionNotRegistered):
        # Another worker, or this one after its next deploy, may know it.
        return Failed(ErrorInfo(error.code, error.message), RetryPolicy())
    info = describe(error)
    if isinstance(error, PayloadTooLarge) or (isinstance(error, DevosError) and not isinstance(error, ActionError)):
        info = ErrorInfo(info.code, info.message, info.details, False, None, info.traceback)
    return Failed(redact_error(info, run.context.redact), run.policy)


def redact_error(info: ErrorInfo, redact: Callable[[Any], Any]) -> ErrorInfo:
    """The error with secret values masked in every text."""
    return ErrorInfo(
        info.code,
        redact(info.message),
        redact(info.details),
        info.retryable,
        info.retry_after_s,
        redact(info.traceback),
    )


def _secrets_in(value: Any) -> list[str]:
    if isinstance(value, SecretStr):
        text = value.get_secret_value()
        return [text] if len(text) >= _SECRET_MIN else []
    if isinstance(value, BaseModel):
        return [found for name in type(value).model_fields for found in _secrets_in(getattr(value, name))]
    if isinstance(value, dict):
        return [found for item in value.values() for found in _secrets_in(item)]
    if isinstance(value, list | tuple):
        return [found for item in value for found in _secrets_in(item)]
    return []


def redactor(secret_values: list[str]) -> Callable[[Any], Any]:
    """A function that masks the secrets in any JSON value."""
    if not secret_values:
        return lambda value: value
    longest_first = sorted(set(secret_values), key=len, reverse=True)

    def redact(value: Any) -> Any:
        if isinstance(value, str):
            for secret in longest_first:
                value = value.replace(secret, MASK)
            return value
        if isinstance(value, dict):
            return {redact(key): redact(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [redact(item) for item in value]
        return value

    return redact


def since(started: float) -> float:
    """Milliseconds since a monotonic instant."""
    return (time.monotonic() - started) * 1000
