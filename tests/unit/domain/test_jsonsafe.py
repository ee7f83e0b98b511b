"""What may be stored: refused at the door, repaired when it is the result of work."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.errors import InvalidInput, PayloadTooLarge
from tasks_app.domain.jsonsafe import INT_MAX, check, clean, dumps

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=4),
    max_leaves=20,
)


def checked(value):
    return check(value, field="input", bytes_max=10_000, depth_max=20)


@given(anything)
def test_what_check_accepts_reads_back_the_same(value):
    try:
        accepted = checked(value)
    except (InvalidInput, PayloadTooLarge):
        return
    assert json.loads(dumps(accepted)) == accepted


@given(anything)
def test_clean_never_fails_and_its_result_is_always_accepted(value):
    cleaned = clean(value)
    assert checked(cleaned) == cleaned
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("a\x00b", "NUL"),
        ({"a\x00": 1}, "NUL"),
        ("\ud800", "surrogate"),
        (float("nan"), "NaN"),
        (float("inf"), "NaN"),
        (10**30, "2^53"),
        (-(10**30), "2^53"),
        ({1: 2}, "must be text, not int"),
        (datetime.now(UTC), "datetime is not JSON"),
        (Decimal(1), "Decimal is not JSON"),
        ({1, 2}, "set is not JSON"),
    ],
)
def test_f53_f55_f58_bad_values_are_refused_with_their_place(value, word):
    with pytest.raises(InvalidInput, match="input.items\\[1\\].*") as caught:
        checked({"items": [1, value]})
    assert word in caught.value.message
    assert caught.value.details[0]["field"].startswith("input.items[1]")


def test_f59_depth_and_size_have_limits():
    deep = value = {}
    for _ in range(1000):
        value["a"] = {}
        value = value["a"]
    with pytest.raises(InvalidInput, match="nested too deeply"):
        checked(deep)
    with pytest.raises(PayloadTooLarge, match="limit is 10000"):
        checked("x" * 20_000)


def test_common_types_get_their_standard_text():
    value = {"id": UUID(int=1), "at": datetime(2026, 1, 2, tzinfo=UTC), "sum": Decimal("1.10"), "n": INT_MAX + 1}
    assert clean(value) == {
        "id": "00000000-0000-0000-0000-000000000001",
        "at": "2026-01-02T00:00:00+00:00",
        "sum": "1.10",
        "n": str(INT_MAX + 1),
    }
