"""Fault points are inert, unless the plan names one that exists."""

import pytest

from tasks_app.domain import faultpoints


def test_inert_without_a_plan():
    for name in faultpoints.POINTS:
        faultpoints.reach(name)
    assert faultpoints._visits == {}


def test_a_plan_raises_at_the_visit_it_names(monkeypatch):
    monkeypatch.setattr(faultpoints, "_plan", faultpoints._parse("finish.before_commit:raise@2"))
    monkeypatch.setattr(faultpoints, "_visits", {})
    faultpoints.reach("finish.before_commit")
    faultpoints.reach("claim.after_commit")
    with pytest.raises(faultpoints.InjectedFault):
        faultpoints.reach("finish.before_commit")
    faultpoints.reach("finish.before_commit")


@pytest.mark.parametrize("text", ["nowhere:kill", "finish.before_commit:explode", "finish.before_commit"])
def test_a_plan_that_names_nothing_is_an_error(text):
    with pytest.raises(ValueError, match="is not a fault point"):
        faultpoints._parse(text)
