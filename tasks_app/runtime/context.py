"""What an action is given: who asks, how to say how far it is, and whether it should stop."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from tasks_app.domain import costs, ids, jsonsafe
from tasks_app.domain.principal import Actor
from tasks_app.domain.waits import refused
from tasks_app.runtime.durable import Durable, StepReporter
from tasks_app.runtime.slots import Signal

PROGRESS_EVERY_S = 0.5
LOGS_EVERY_S = 1.0
MESSAGE_MAX = 10_000


class Cancelled(BaseException):
    """Raised inside an action when its cancellation was asked for. BaseException: `except Exception` lets it pass."""


class HandBack(BaseException):
    """Raised at a pause point when the worker shuts down: the job goes on elsewhere from its checkpoint."""

    def __init__(self, checkpoint: dict[str, Any]) -> None:
        super().__init__()
        self.checkpoint = checkpoint


class Reporter(StepReporter, Protocol):
    """Where progress and logs go while an attempt runs, and where its signals and steps come from."""

    def report(self, progress: dict[str, Any] | None, logs: list[dict[str, Any]]) -> None:
        """Store what is new."""

    def signal(self) -> Signal | None:
        """What was asked of this attempt, if anything."""

    def stopping(self) -> bool:
        """Whether the worker shuts down."""

    def publish(self, type: str, data: Any, resource: tuple[str, str] | None, key: str) -> None:
        """Publish an event of this attempt."""

    def spend(self, costs: list[costs.Cost]) -> bool:
        """Store what was spent; False when the database is away. Storing the same again changes nothing."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who and what an attempt is."""

    organization_id: UUID
    actor: Actor
    correlation_id: str
    attempt: int
    max_attempts: int
    execution: UUID
    task: UUID | None = None
    job: UUID | None = None
    request_id: str = ""


class Logger:
    """``ctx.log``: lines of the execution's log, with structured metadata."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def debug(self, message: str, **metadata: Any) -> None:
        self._context._write("debug", message, metadata)

    def info(self, message: str, **metadata: Any) -> None:
        self._context._write("info", message, metadata)

    def warn(self, message: str, **metadata: Any) -> None:
        self._context._write("warn", message, metadata)

    def error(self, message: str, **metadata: Any) -> None:
        self._context._write("error", message, metadata)


class Context(Durable):
    """The first argument of every action. Its steps and waits are those of `Durable`."""

    def __init__(
        self,
        identity: Identity,
        reporter: Reporter,
        *,
        checkpoint: dict[str, Any] | None = None,
        log_lines_max: int,
        wait_timeout_s: float,
    ) -> None:
        super().__init__(wait_timeout_s)
        self._identity = identity
        self._reporter = self._steps = reporter
        self._log_lines_max = log_lines_max
        self._lines = 0
        self._written_at = time.monotonic()
        self._progress_new = False
        self.checkpoint = checkpoint
        self.log = Logger(self)
        self.last_progress: dict[str, Any] | None = None
        self.pending_logs: list[dict[str, Any]] = []
        self.pending_costs: list[costs.Cost] = []
        self.dropped = 0

    # -- who ----------------------------------------------------------------------------------------------------------

    @property
    def actor(self) -> Actor:
        """Who asked for the work."""
        return self._identity.actor

    @property
    def attempt(self) -> int:
        """Which try this is, from 1; interruptions and waits do not count."""
        return self._identity.attempt

    @property
    def max_attempts(self) -> int:
        return self._identity.max_attempts

    @property
    def execution_id(self) -> str:
        return ids.to_text("execution", self._identity.execution)

    @property
    def task_id(self) -> str | None:
        return ids.to_text("task", self._identity.task) if self._identity.task else None

    @property
    def job_id(self) -> str | None:
        return ids.to_text("job", self._identity.job) if self._identity.job else None

    @property
    def correlation_id(self) -> str:
        return self._identity.correlation_id

    @property
    def request_id(self) -> str:
        return self._identity.request_id

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this job: give it to other systems so that they do the work once."""
        return self.job_id or self.execution_id

    # -- how far ------------------------------------------------------------------------------------------------------

    def progress(
        self, current: float, total: float | None = None, phase: str | None = None, message: str | None = None
    ) -> None:
        """Say how far the work is. Call it as often as you like: it is written at most twice a second, and the last."""
        share = round(100 * min(max(current / total, 0), 1), 1) if total else None
        parts = {"current": current, "total": total, "percentage": share, "phase": phase, "message": message}
        kept = {key: value for key, value in parts.items() if value is not None}
        self.last_progress = jsonsafe.clean(self.redact(kept))
        self._progress_new = True
        self._flush_when(PROGRESS_EVERY_S)

    def _write(self, level: str, message: str, metadata: dict[str, Any]) -> None:
        if self._lines >= self._log_lines_max:
            self.dropped += 1
            return
        self._lines += 1
        text = jsonsafe.clean_text(self.redact(str(message)))[:MESSAGE_MAX]
        kept = jsonsafe.clean(self.redact(metadata))
        self.pending_logs.append({"level": level, "message": text, "metadata": kept, "at": time.monotonic()})
        self._flush_when(LOGS_EVERY_S)

    def _flush_when(self, age_s: float) -> None:
        if time.monotonic() - self._written_at >= age_s:
            self.flush()

    def flush(self) -> None:
        """Write what is new now."""
        progress = self.last_progress if self._progress_new else None
        logs, self.pending_logs, self._progress_new = self.pending_logs, [], False
        self._written_at = time.monotonic()
        if progress or logs:
            self._reporter.report(progress, logs)

    # -- what it cost -------------------------------------------------------------------------------------------------

    def cost(
        self,
        provider: str,
        model: str = "",
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        credits: costs.Number = 0,
        amount: costs.Number | None = None,
        currency: str | None = None,
        key: str | None = None,
    ) -> None:
        """Say what was just spent: tokens, credits, or an ``amount`` of money in ``currency`` (ISO 4217, like EUR).

        It counts from this moment on, whatever becomes of the attempt. With a ``key`` it counts once for the job,
        however often it is said: for the cost of a stored step, which a later attempt reuses. Amounts are kept exactly,
        to 12 decimals. Raises `ActionError` INVALID_COST for what is negative, not finite or has no currency.
        """
        self.pending_costs.append(
            costs.cost(
                self.redact(provider),
                self.redact(model),
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                credits=credits,
                amount=amount,
                currency=currency,
                key=key,
            )
        )
        self.flush_costs()

    def flush_costs(self) -> bool:
        """Write what is not written yet; whether nothing is left."""
        if self.pending_costs and self._reporter.spend(self.pending_costs):
            self.pending_costs = []
        return not self.pending_costs

    # -- whether to stop ----------------------------------------------------------------------------------------------

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked to cancel. Costs a look into shared memory."""
        return self._reporter.signal() is Signal.CANCEL

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` when somebody asked to cancel."""
        if self.cancelled:
            raise Cancelled

    def pause_point(self, checkpoint: dict[str, Any]) -> None:
        """A place where the work may be interrupted and continued from ``checkpoint`` (JSON) by another attempt."""
        self.checkpoint = checkpoint
        self.raise_if_cancelled()
        if self._reporter.stopping():
            raise HandBack(jsonsafe.clean(checkpoint))

    # -- what happened ------------------------------------------------------------------------------------------------

    def emit(self, type: str, data: Any = None, resource: tuple[str, str] | None = None, *, key: str = "") -> None:
        """Publish an event. ``type`` is dotted lower case; ``resource`` is (type, id); ``key`` names one of many.

        It is published each time the line is reached: put it into a `step` when the action may run again.
        """
        if self.redact(key) != key:
            raise refused("The key of an event cannot be a secret: events are shown. Use something that names it.")
        about = (self.redact(resource[0]), self.redact(resource[1])) if resource else None
        self._reporter.publish(type, self.redact(data), about, key)
