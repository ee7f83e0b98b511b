"""The dead-letter desk in a browser: from a group to a task that retries all of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from tasks_app.models import Organization, Task
from tests.api.rows import make_letter, make_task
from tests.browser.conftest import Visitor


@pytest.fixture
def letters(organization: Organization) -> None:
    for number in range(30):
        letter = {"fingerprint": ("a" if number % 3 else "b") * 64}
        error = {"code": "NETWORK_TIMEOUT", "message": f"{'host' if number % 3 else 'proxy'} does not answer in 30 s"}
        make_letter(make_task(organization, status="failed"), error=error, **letter)


def test_all_of_a_group_is_retried_by_a_task(
    letters: None, visit: Callable[..., Visitor], person: Callable[..., User]
) -> None:
    visitor = visit()
    visitor.login(person("operator"))
    page = visitor.go("/admin/tasks_app/deadletterjob/?status=open")
    expect(page.get_by_text("Open, by cause")).to_be_visible()
    assert not visitor.overflows()
    visitor.picture("dead-letters")
    page.get_by_role("row", name="host does not answer").first.get_by_role("link", name="Retry").click()
    expect(page.get_by_text("20 open dead letters")).to_be_visible()
    page.fill("#id_canary", "5")
    page.fill("#id_rate", "10/s")
    page.fill("#id_reason", "the network is back")
    visitor.picture("dead-letters-all")
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("A task does it now")).to_be_visible()
    assert Task.objects.get(type="core.dead_letters.apply").input["canary"] == 5


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, True)])
def test_the_desk_fits(
    letters: None, visit: Callable[..., Visitor], person: Callable[..., User], width: int, dark: bool
) -> None:
    visitor = visit(width, 800, dark=dark)
    visitor.login(person("operator"))
    visitor.go("/admin/tasks_app/deadletterjob/")
    visitor.picture(f"dead-letters-{width}")
    assert not visitor.overflows()
