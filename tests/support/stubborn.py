"""A plugin of actions that do not stop when they should, and one that waits, for the acceptance tests."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time

from tasks_app.sdk import ActionInput, Context, Plugin, RetryPolicy, action

ONCE = RetryPolicy(max_attempts=1)
STUBBORN_CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


class How(ActionInput):
    how: str
    marker: str = ""


@action("stubborn.hang", permission="test.run", timeout_s=1.0, retry=ONCE)
def hang(ctx: Context, input: How) -> None:
    """Outlives its time limit in one of several ways."""
    if input.how == "sleep":
        time.sleep(600)
    elif input.how == "socket":
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            listening.accept()
    elif input.how == "swallow":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        while True:
            try:
                time.sleep(0.01)
            except Exception:
                continue
    elif input.how == "child":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        subprocess.run([sys.executable, "-c", STUBBORN_CHILD, input.marker], check=False)


@action("stubborn.effect", permission="test.run", retry=RetryPolicy(max_attempts=3, delay_ms=0))
def effect(ctx: Context, input: How) -> str:
    """Does a durable step, then dies the first time."""
    done = ctx.step("effect", lambda: f"{input.marker} by {ctx.execution_id}")
    if ctx.steps_reused == 0:
        raise ConnectionResetError("after the effect")
    return done


@action("stubborn.patient", permission="test.run", retry=ONCE)
def patient(ctx: Context, input: How) -> dict:
    """A step, a sleep, an event, a child and a decision, each of which gives the worker back."""
    first = ctx.step("first", lambda: ctx.execution_id)
    ctx.sleep(6)
    paid = ctx.wait_event("patient.paid", key=input.marker, timeout_s=120)
    ctx.spawn("core.echo", {"value": paid.data})
    [child] = ctx.wait_children(timeout_s=120)
    decision = ctx.wait_approval("Go on?", timeout_s=120)
    return {"first": first, "child": child.output, "approved": decision.approved}


plugin = Plugin("stubborn", actions=[hang, effect, patient])
