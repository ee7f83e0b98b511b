"""The rough ones, for trying what the platform does with bad work: ``core.spin`` and ``core.crash``."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from itertools import repeat
from typing import Literal

from pydantic import Field

from tasks_app.sdk import ActionError, ActionInput, ActionOutput, Context, RetryPolicy, action

_SAMPLE_TURNS = 2_000_000
_DEATH_WITHIN_S = 5.0


class SpinInput(ActionInput):
    """How long to spin."""

    seconds: float = Field(ge=0, le=600, description="About how long to hold the interpreter, seconds.")


class SpinOutput(ActionOutput):
    held_s: float = Field(description="Seconds of the one call that held the interpreter.")
    pid: int = Field(description="The process that ran it.")


@action(
    "core.spin",
    title="Hold the interpreter",
    description=(
        "Holds the CPU and Python's global lock for a time in one call of C code: no other thread of the process runs, "
        "no signal is handled, no cancel is seen. For trying leases and time limits."
    ),
    permission="core.run",
    timeout_s=700,
    retry=RetryPolicy(max_attempts=1),
)
def spin(ctx: Context, input: SpinInput) -> SpinOutput:
    """Spin for about ``input.seconds``; the length is measured out on short samples first."""
    # The quickest sample: one that was preempted would make the spin too short.
    seconds_a_turn = min(_hold(_SAMPLE_TURNS) for _ in range(5)) / _SAMPLE_TURNS
    ctx.progress(0, 1, "spinning")
    return SpinOutput(held_s=round(_hold(int(input.seconds / seconds_a_turn)), 3), pid=os.getpid())


def _hold(turns: int) -> float:
    """Run ``turns`` empty turns in one C loop that neither yields the lock nor looks at signals; seconds it took."""
    started = time.perf_counter()
    deque(repeat(None, turns), maxlen=0)
    return time.perf_counter() - started


class CrashInput(ActionInput):
    """How to die."""

    signal: Literal["KILL", "SEGV", "ABRT", "TERM"] = Field("KILL", description="The signal the process sends itself.")
    after_s: float = Field(0, ge=0, le=600, description="Seconds to run before that.")


@action(
    "core.crash",
    title="Crash the worker",
    description="Kills the process it runs in. For trying what happens to the work of a worker that dies.",
    permission="core.crash",
    timeout_s=700,
    dangerous=True,
)
def crash(ctx: Context, input: CrashInput) -> None:
    """Send the signal to this very process. Raises CRASH_SURVIVED when the process is still there afterwards."""
    ctx.log.warn("about to crash this process", pid=os.getpid(), signal=input.signal)
    time.sleep(input.after_s)
    os.kill(os.getpid(), getattr(signal, f"SIG{input.signal}"))
    time.sleep(_DEATH_WITHIN_S)
    raise ActionError("CRASH_SURVIVED", f"the process handled SIG{input.signal} and lives on", retryable=False)
