"""Fixtures for pytest: ``pytest_plugins = ["tasks_app.testing.fixtures"]`` in the top ``conftest.py``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tasks_app.domain.principal import Actor, Principal
from tasks_app.models import Organization
from tasks_app.services.setup import DEFAULT_ORGANIZATION
from tasks_app.testing.clocks import FakeClock, fake_clock
from tasks_app.testing.draining import silent_bells


@pytest.fixture
def devos_clock() -> Iterator[FakeClock]:
    """A clock the test moves; give it to `drain` as well."""
    with fake_clock() as fake:
        yield fake


@pytest.fixture
def devos_principal(transactional_db: None) -> Iterator[Principal]:
    """An admin of the default organisation, to submit with. Nothing is sent to Redis meanwhile."""
    organization = Organization.objects.get(slug=DEFAULT_ORGANIZATION)
    with silent_bells():
        yield Principal(Actor("system", "tests"), organization.id, "admin")
