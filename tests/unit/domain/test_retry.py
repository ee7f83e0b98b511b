"""How long to wait and whether to try again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks_app.domain.retry import RetryPolicy


def test_the_sequences_of_the_specification():
    exponential = RetryPolicy(max_attempts=5, strategy="exponential", delay_ms=1000, max_delay_ms=60000)
    assert [exponential.delay_s(n) for n in (1, 2, 3, 4, 5)] == [1, 2, 4, 8, 16]
    linear = RetryPolicy(strategy="linear", delay_ms=500)
    assert [linear.delay_s(n) for n in (1, 2, 3)] == [0.5, 1.0, 1.5]
    fixed = RetryPolicy(strategy="fixed", delay_ms=700)
    assert [fixed.delay_s(n) for n in (1, 9)] == [0.7, 0.7]


def test_f37_long_backoffs_are_not_cut_by_a_hidden_cap():
    policy = RetryPolicy(strategy="exponential", delay_ms=3_600_000, max_delay_ms=86_400_000, max_attempts=4)
    assert [policy.delay_s(n) for n in (1, 2, 3)] == [3600, 7200, 14400]


@given(
    st.sampled_from(["fixed", "linear", "exponential"]),
    st.integers(0, 86_400_000),
    st.integers(0, 86_400_000),
    st.integers(1, 100),
    st.booleans(),
    st.none() | st.floats(0, 1e7),
)
def test_a_delay_is_never_over_the_cap_nor_under_the_floor(strategy, delay, cap, failures, jitter, retry_after):
    policy = RetryPolicy(strategy=strategy, delay_ms=delay, max_delay_ms=cap, min_delay_ms=min(10, cap), jitter=jitter)
    assert min(10, cap) / 1000 <= policy.delay_s(failures, retry_after) <= cap / 1000


@given(st.integers(0, 10_000), st.integers(1, 60))
def test_without_jitter_delays_never_shrink(delay, failures):
    policy = RetryPolicy(strategy="exponential", delay_ms=delay)
    assert policy.delay_s(failures) <= policy.delay_s(failures + 1)


def test_retry_after_is_honoured_up_to_the_cap():
    policy = RetryPolicy(delay_ms=1000, max_delay_ms=30_000)
    assert policy.delay_s(1, 12) == 12
    assert policy.delay_s(1, 3600) == 30


def test_what_the_error_says_wins_then_the_list_then_the_defaults():
    listed = RetryPolicy(retry_on=("MY_CODE",))
    assert listed.is_retryable("MY_CODE") and not listed.is_retryable("NETWORK_TIMEOUT")
    assert listed.is_retryable("OTHER", said=True) and not listed.is_retryable("MY_CODE", said=False)
    default = RetryPolicy()
    assert default.is_retryable("NETWORK_TIMEOUT") and default.is_retryable("RATE_LIMIT")
    for code in ("PERMISSION_DENIED", "INVALID_INPUT", "NOT_FOUND", "AUTHENTICATION_FAILED"):
        assert not default.is_retryable(code)


@pytest.mark.parametrize("wrong", [{"max_attempts": 0}, {"max_attempts": 101}, {"delay_ms": -1}, {"typo": 1}])
def test_f38_a_policy_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValidationError):
        RetryPolicy(**wrong)
