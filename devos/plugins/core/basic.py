"""The well-behaved ones: ``core.echo``, ``core.noop``, ``core.sleep``, ``core.fail``."""

from __future__ import annotations

import time

from pydantic import Field, JsonValue

from devos.plugins.waiting import wait_until
from tasks_app.sdk import ActionError, ActionInput, ActionOutput, Context, RetryPolicy, action


class EchoInput(ActionInput):
    """Anything."""

    value: JsonValue = Field(None, description="Any JSON value; it comes back unchanged.")


class EchoOutput(ActionOutput):
    value: JsonValue = Field(description="What was given.")


@action(
    "core.echo",
    title="Echo",
    description="Gives back the value it was given. For trying a door, a template or a workflow.",
    permission="core.run",
    timeout_s=30,
    modes={"sync", "async"},
    agent_tool=True,
)
def echo(ctx: Context, input: EchoInput) -> EchoOutput:
    """Return the input."""
    return EchoOutput(value=input.value)


class NoopInput(ActionInput):
    """Nothing."""


@action(
    "core.noop",
    title="Do nothing",
    description="Does nothing and returns nothing. For measuring what the platform itself costs.",
    permission="core.run",
    timeout_s=30,
    modes={"sync", "async"},
)
def noop(ctx: Context, input: NoopInput) -> None:
    """Do nothing."""


class SleepInput(ActionInput):
    """How long to sleep."""

    seconds: float = Field(ge=0, le=80_000, description="How long to sleep, seconds.")
    ignore_cancel: bool = Field(
        False, description="Sleep on when a cancel or pause is asked for, as badly written work does."
    )


class SleepOutput(ActionOutput):
    slept_s: float = Field(description="Seconds slept, those before a pause included.")
    resumed: bool = Field(description="Whether the sleep was interrupted and continued from a checkpoint.")


@action(
    "core.sleep",
    title="Sleep",
    description="Sleeps and reports progress. Ends at once when cancelled; can be paused, and then sleeps the rest.",
    permission="core.run",
    timeout_s=86_400,
    supports_pause=True,
    modes={"sync", "async", "stream"},
    agent_tool=True,
)
def sleep(ctx: Context, input: SleepInput) -> SleepOutput:
    """Sleep ``input.seconds``, less what an earlier sitting has slept already."""
    before = float((ctx.checkpoint or {}).get("slept_s", 0.0))
    started = time.monotonic()

    def slept() -> float:
        return round(before + time.monotonic() - started, 3)

    def tick() -> None:
        ctx.progress(min(slept(), input.seconds), input.seconds, "sleeping")
        if not input.ignore_cancel:
            ctx.raise_if_cancelled()
            ctx.pause_point({"slept_s": slept()})

    wait_until(started + input.seconds - before, tick)
    ctx.progress(input.seconds, input.seconds or None, "sleeping")
    return SleepOutput(slept_s=slept(), resumed=before > 0)


class FailInput(ActionInput):
    """How to fail."""

    times: int = Field(1, ge=0, le=1_000, description="How many attempts fail before one succeeds.")
    code: str = Field(
        "TEMPORARY_UNAVAILABLE",
        pattern=r"^[A-Z][A-Z0-9_]*$",
        max_length=64,
        description="Error code. Codes like TEMPORARY_UNAVAILABLE and NETWORK_TIMEOUT are tried again, others not.",
    )
    message: str = Field("failed as asked", min_length=1, max_length=1_000, description="Text of the error.")
    retryable: bool | None = Field(
        None, description="Whether the error asks for another attempt; null leaves it to the code."
    )
    retry_after_s: float | None = Field(
        None, ge=0, le=86_400, description="Seconds the error asks to wait before the next attempt."
    )


class FailOutput(ActionOutput):
    attempt: int = Field(description="The attempt that succeeded, from 1.")


@action(
    "core.fail",
    title="Fail",
    description="Fails a number of times with a code, then succeeds. For trying retries, dead letters and alerts.",
    permission="core.run",
    timeout_s=30,
    retry=RetryPolicy(max_attempts=3, strategy="exponential", delay_ms=200, max_delay_ms=5_000),
    modes={"sync", "async"},
)
def fail(ctx: Context, input: FailInput) -> FailOutput:
    """Fail while the attempt is one of the first ``input.times``."""
    if ctx.attempt <= input.times:
        raise ActionError(
            input.code,
            input.message,
            retryable=input.retryable,
            retry_after_s=input.retry_after_s,
            details={"attempt": ctx.attempt, "failures_left": input.times - ctx.attempt},
        )
    return FailOutput(attempt=ctx.attempt)
