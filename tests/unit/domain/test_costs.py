"""What may be said about costs, and that it stays exact."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.domain.costs import AMOUNT_MAX, DECIMALS, cost
from tasks_app.domain.errors import ActionError

exact = st.decimals(min_value=0, max_value=AMOUNT_MAX - 1, places=DECIMALS, allow_nan=False)


@given(exact)
def test_a_decimal_is_kept_as_it_is(amount):
    assert cost("p", amount=amount, currency="EUR").amount == amount
    assert cost("p", amount=str(amount), currency="EUR").amount == amount


@given(st.floats(min_value=0, max_value=1e15))
def test_a_float_is_taken_as_it_prints(amount):
    kept = cost("p", amount=amount, currency="EUR").amount
    assert kept == round(Decimal(repr(amount)), DECIMALS)


@given(st.one_of(st.floats(), st.decimals(), st.integers(), st.text(max_size=20), st.none(), st.booleans()))
def test_whatever_is_given_is_kept_or_refused_by_name(value):
    for name in ("amount", "credits", "input_tokens"):
        try:
            made = cost("p", currency="EUR", **{"amount": 1, name: value})
        except ActionError as refused:
            assert refused.code == "INVALID_COST" and refused.retryable is False
            assert refused.details[0]["field"] == name or (name == "amount" and value is None)
        else:
            assert made.amount.is_finite() and made.amount >= 0 and made.credits >= 0 and made.input_tokens >= 0


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"amount": float("nan"), "currency": "EUR"}, "amount"),
        ({"amount": float("inf"), "currency": "EUR"}, "amount"),
        ({"amount": -0.01, "currency": "EUR"}, "amount"),
        ({"amount": "1e400000", "currency": "EUR"}, "amount"),
        ({"amount": Decimal("sNaN"), "currency": "EUR"}, "amount"),
        ({"amount": Decimal("0.0000000000001"), "currency": "EUR"}, "amount"),
        ({"amount": 1}, "currency"),
        ({"amount": 1, "currency": "euro"}, "currency"),
        ({"currency": "EUR"}, "amount"),
        ({"input_tokens": -1}, "input_tokens"),
        ({"output_tokens": 1.5}, "output_tokens"),
        ({"output_tokens": True}, "output_tokens"),
        ({"output_tokens": 2**60}, "output_tokens"),
        ({"provider": ""}, "provider"),
        ({"model": "m" * 201}, "model"),
        ({"key": ""}, "key"),
    ],
)
def test_nonsense_is_refused_by_name(given, field):
    with pytest.raises(ActionError) as refused:
        cost(**{"provider": "p", **given})
    assert refused.value.details[0]["field"] == field
