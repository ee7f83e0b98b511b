"""What may be waited for, and which patterns an event fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain import ids, waits
from tasks_app.domain.errors import ActionError

PART = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)


@given(st.lists(PART, min_size=2, max_size=5))
def test_every_pattern_of_a_type_is_one_a_wait_may_have(parts):
    type = ".".join(["x", *parts])
    patterns = waits.patterns_for(type)
    assert patterns[0] == type and len(patterns) == len(parts) + 1
    for pattern in patterns:
        assert waits.for_event(pattern, None, 1).pattern == pattern
        assert type == pattern or type.startswith(pattern.removesuffix("*"))


@pytest.mark.parametrize("pattern", ["", "*", "shop", "shop.*.sold", "Shop.sold", "shop..sold", "shop.", "a.b" * 99])
def test_what_is_no_pattern_is_refused(pattern):
    with pytest.raises(ActionError, match="pattern") as refused:
        waits.for_event(pattern, None, 1)
    assert (refused.value.code, refused.value.retryable) == ("INVALID_WAIT", False)


@pytest.mark.parametrize("pattern", ["task.completed", "job.*", "execution.*"])
def test_events_of_the_runtime_are_refused(pattern):
    with pytest.raises(ActionError, match="wait_children"):
        waits.for_event(pattern, None, 1)


@pytest.mark.parametrize("span", [-1, float("nan"), float("inf"), 400 * 86_400, True, "5"])
def test_a_span_that_makes_no_sense_is_refused(span):
    with pytest.raises(ActionError):
        waits.seconds(span, "timeout_s")


@pytest.mark.parametrize(
    "make",
    [
        lambda: waits.for_event("shop.sold", "", 1),
        lambda: waits.for_event("shop.sold", "a\x00", 1),
        lambda: waits.for_approval(" ", None, "operator", "approvals.decide", 1),
        lambda: waits.for_approval("Deploy?", None, "viewer", "approvals.decide", 1),
        lambda: waits.for_children([], 1),
    ],
)
def test_waits_without_sense_are_refused(make):
    with pytest.raises(ActionError) as refused:
        make()
    assert refused.value.code == "INVALID_WAIT"


def test_children_are_kept_newest_first():
    tasks = [ids.new_id() for _ in range(3)]
    request = waits.for_children([ids.to_text("task", task) for task in tasks], 1)
    assert list(request.children) == tasks[::-1]
