"""Knobs: defaults, refusals that name the variable, and a page that says the same."""

import pytest

from devos.conf import ConfError, load, unknown
from docs import generate_settings


def test_defaults_and_values_from_the_environment():
    assert load({}).lease_s == 15
    knobs = load({"DEVOS_LEASE_S": "30", "DEVOS_ALLOW_PRIVATE_ADDRESSES": "0", "OTHER": "x"})
    assert (knobs.lease_s, knobs.allow_private_addresses) == (30, False)


@pytest.mark.parametrize(
    ("environ", "word"),
    [
        ({"DEVOS_LEASE_S": "soon"}, "DEVOS_LEASE_S"),
        ({"DEVOS_LEASE_S": "-1"}, "DEVOS_LEASE_S"),
        ({"DEVOS_CLAIM_BATCH_MAX": "0"}, "DEVOS_CLAIM_BATCH_MAX"),
        ({"DEVOS_LEASE_S": "6", "DEVOS_RENEW_EVERY_S": "5"}, "at least three times"),
    ],
)
def test_f32_a_value_that_makes_no_sense_stops_the_process(environ, word):
    with pytest.raises(ConfError, match=word):
        load(environ)


def test_a_typing_error_is_named():
    assert unknown({"DEVOS_LEASE": "1", "DEVOS_LEASE_S": "1", "DEVOS_PORT": "1"}) == ["DEVOS_LEASE"]


def test_the_reference_is_what_the_code_says():
    """Run `python docs/generate_settings.py` when this fails."""
    assert generate_settings.TARGET.read_text() == generate_settings.page()
