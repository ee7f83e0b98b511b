"""`run_action` gives an action what it waits for, and says so when the test gave it nothing."""

from __future__ import annotations

import pytest

from tasks_app.sdk import ActionInput, Context, WaitTimeout, action
from tasks_app.testing import TIMES_OUT, NothingGiven, RecordingReporter, Snooze, run_action


class Order(ActionInput):
    key: str = "7"


@action("inline.order", permission="inline.run")
def order(ctx: Context, input: Order) -> dict:
    ctx.sleep(60)
    paid = ctx.wait_event("payment.*", key=input.key)
    decision = ctx.wait_approval("Ship it?", details=paid.data)
    for name in ("a", "b"):
        ctx.spawn("core.echo", {"value": name})
    children = ctx.wait_children()
    return {"paid": paid.data, "shipped": decision.approved, "children": [one.succeeded for one in children]}


@action("inline.snoozes", permission="inline.run")
def snoozing(ctx: Context, input: Order) -> None:
    ctx.snooze(5)


def test_everything_is_given():
    reporter = RecordingReporter(
        incoming=[("payment.made", 1, "6"), ("payment.made", 2, "7")],
        decisions=[(True, "yes")],
        children=["a", ValueError("no")],
    )
    done = run_action(order, {}, reporter=reporter)
    assert done == {"paid": 2, "shipped": True, "children": [True, False]}
    assert reporter.slept == [60] and reporter.approvals[0].details == 2
    assert reporter.spawned == [("core.echo", {"value": "a"}, {}), ("core.echo", {"value": "b"}, {})]
    assert run_action(order, {}, reporter=reporter, attempt=2) == done
    assert len(reporter.spawned) == 2


@pytest.mark.parametrize(
    ("given", "says"),
    [({}, "the event payment"), ({"incoming": [("payment.made", 1, "7")]}, r"the approval 'Ship it\?'")],
)
def test_what_is_not_given_is_named(given, says):
    with pytest.raises(NothingGiven, match=says):
        run_action(order, {}, reporter=RecordingReporter(**given))


def test_a_wait_can_time_out():
    with pytest.raises(WaitTimeout, match="payment"):
        run_action(order, {}, reporter=RecordingReporter(incoming=[TIMES_OUT]))


def test_a_snooze_comes_through():
    with pytest.raises(Snooze) as snoozed:
        run_action(snoozing, {})
    assert snoozed.value.delay_s == 5
