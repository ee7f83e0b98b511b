"""Actions that wait, for the tests of waits, and what those tests share."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tasks_app.domain import clock, ids
from tasks_app.models import Approval, Event, Execution, Task
from tasks_app.sdk import ActionError, ActionInput, Context, Plugin, RetryPolicy, WaitTimeout, action
from tasks_app.services import events
from tasks_app.services.tasks import TaskSpec, submit

HOUR = timedelta(hours=1)


class What(ActionInput):
    key: str = ""
    timeout_s: float = 1800.0
    times: int = 1
    fails: int = 0
    delay_s: float = 0.0


@action("test.sleeps", permission="test.run")
def sleeps(ctx: Context, input: What) -> dict:
    first = ctx.step("first", lambda: ctx.attempt)
    ctx.sleep(input.timeout_s)
    return {"first": first, "attempt": ctx.attempt, "execution": ctx.execution_id}


@action("test.listens", permission="test.run", retry=RetryPolicy(max_attempts=1))
def listens(ctx: Context, input: What) -> list:
    got = []
    for _ in range(input.times):
        try:
            event = ctx.wait_event("shop.*", key=input.key or None, timeout_s=input.timeout_s)
        except WaitTimeout as late:
            got.append(late.code)
        else:
            got.append(event.data.get("n"))
    return got


@action("test.asks", permission="test.run", retry=RetryPolicy(max_attempts=1))
def asks(ctx: Context, input: What) -> dict:
    decision = ctx.wait_approval("Deploy?", details={"version": 3}, role=input.key or "operator", timeout_s=1800)
    return {"approved": decision.approved, "by": decision.by, "comment": decision.comment}


@action("test.snoozes", permission="test.run", retry=RetryPolicy(max_attempts=1))
def snoozes(ctx: Context, input: What) -> int:
    runs = Execution.objects.filter(action_id="test.snoozes").count()
    if runs <= input.times:
        ctx.snooze(600)
    return runs


@action("test.parent", permission="test.run", retry=RetryPolicy(max_attempts=1))
def parent(ctx: Context, input: What) -> list:
    for index in range(input.times):
        ctx.spawn("test.child", {"key": str(index), "fails": input.fails}, delay_s=input.delay_s)
    try:
        outcomes = ctx.wait_children(timeout_s=input.timeout_s)
    except WaitTimeout as late:
        return [late.code]
    return [[one.status, one.output, (one.error or {}).get("code")] for one in outcomes]


@action("test.child", permission="test.run", retry=RetryPolicy(max_attempts=1))
def child(ctx: Context, input: What) -> str:
    if input.fails:
        raise ActionError("CHILD_FAILED", "no", retryable=False)
    return input.key


@action("test.swallows", permission="test.run", retry=RetryPolicy(max_attempts=1))
def swallows(ctx: Context, input: What) -> str:
    try:
        ctx.sleep(600)
    except BaseException:
        if input.key == "raise":
            raise ActionError("OTHER", "something else", retryable=False) from None
    return "done"


changed: list[str] = []


@action("test.changes", permission="test.run", retry=RetryPolicy(max_attempts=1))
def changes(ctx: Context, input: What) -> str:
    """Its code is another one in the second run: it does what ``key`` names instead of sleeping."""
    if not changed:
        changed.append(input.key)
        ctx.sleep(0.001)
        ctx.snooze(0)
    if input.key == "step":
        ctx.step("sleep", lambda: 1)
    elif input.key == "spawn":
        ctx.spawn("core.echo", {})
    elif input.key == "event":
        ctx.wait_event("shop.sold")
    elif input.key == "strangers":
        ctx.sleep(0.001)
        ctx.wait_children([ids.to_text("task", ids.new_id())])
    elif input.key == "options":
        ctx.sleep(0.001)
        ctx.spawn("core.echo", {}, colour="red")
    return "done"


@action("test.sync", permission="test.run", modes={"sync", "async"})
def in_a_request(ctx: Context, input: What) -> None:
    ctx.sleep(5)


PLUGIN = Plugin("waits", actions=[sleeps, listens, asks, snoozes, parent, child, swallows, changes, in_a_request])


def start(principal, type: str, **input: Any) -> Task:
    return Task.objects.get(id=submit(principal, TaskSpec(type=type, input=input)).task_id)


def after(delta: timedelta):
    later = clock.now() + delta
    return clock.using(lambda: later)


def state(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def shop(principal, n: int, key: str = "", type: str = "shop.sold") -> Event:
    return events.emit(principal, type, data={"n": n}, key=key)


def approval_of(task: Task) -> Approval:
    return Approval.objects.get(task=task)
