"""The pace of a bulk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.dead_letters import TARGET, DeadLetterVerb, batch_size, rows_per_s


@pytest.mark.parametrize(("rate", "expected"), [("5/s", 5), ("30/m", 0.5), ("36/h", 0.01), ("999999/s", 999_999)])
def test_a_rate_in_rows_a_second(rate, expected):
    assert rows_per_s(rate) == expected


@pytest.mark.parametrize("rate", ["", "5", "0/s", "05/s", "-1/s", "5/d", "1.5/s", "5/s ", "5/s\n", "1000000/s"])
def test_what_is_no_rate(rate):
    with pytest.raises(ValueError, match="is no rate"):
        rows_per_s(rate)


@given(count=st.integers(1, 999_999), unit=st.sampled_from("smh"), most=st.integers(1, 1_000))
def test_a_batch_is_a_second_of_work_within_its_limits(count, unit, most):
    size = batch_size(f"{count}/{unit}", most)
    assert 1 <= size <= most
    assert size == 1 or size <= rows_per_s(f"{count}/{unit}")
    assert batch_size(None, most) == most


def test_every_verb_has_its_state():
    assert set(TARGET) == set(DeadLetterVerb)
    assert len(set(TARGET.values())) == 4
