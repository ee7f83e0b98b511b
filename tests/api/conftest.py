"""Fixtures of the REST tests: two organisations, callers of every kind, and rows to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.core.cache import cache
from redis.exceptions import RedisError

from tasks_app.actions import registry
from tasks_app.domain.principal import Actor, Principal
from tasks_app.models import Organization
from tasks_app.services import api_keys
from tests.api.actions import plugin
from tests.api.client import Api
from tests.api.rows import World, make_world

ROLES = ("viewer", "operator", "admin")


@pytest.fixture(autouse=True)
def _own_actions() -> Iterator[None]:
    registry.all_actions()
    registry.register(plugin)
    yield
    registry.unregister(plugin.name)


@pytest.fixture(autouse=True)
def _quick_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    yield
    with suppress(RedisError):
        cache.clear()


@pytest.fixture
def organization(db: None) -> Organization:
    return Organization.objects.get(slug="default")


@pytest.fixture
def other_organization(db: None) -> Organization:
    return Organization.objects.create(slug="other", name="Other")


def system_of(organization: Organization) -> Principal:
    return Principal(Actor("system", "tests"), organization.id, "admin")


@pytest.fixture
def caller(organization: Organization) -> Callable[..., Api]:
    """``caller("viewer", scopes=[...])``: a client with a fresh key."""

    def make(role: str = "admin", organization: Organization = organization, **options: Any) -> Api:
        _, key = api_keys.create(system_of(organization), f"{role} of the tests", role, **options)
        return Api(key)

    return make


@pytest.fixture
def viewer(caller: Callable[..., Api]) -> Api:
    return caller("viewer")


@pytest.fixture
def operator(caller: Callable[..., Api]) -> Api:
    return caller("operator")


@pytest.fixture
def admin(caller: Callable[..., Api]) -> Api:
    return caller("admin")


@pytest.fixture
def stranger(caller: Callable[..., Api], other_organization: Organization) -> Api:
    """An admin of the other organisation."""
    return caller("admin", other_organization)


@pytest.fixture
def world(organization: Organization) -> World:
    """One of everything in the default organisation."""
    return make_world(organization)
