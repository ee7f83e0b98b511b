"""People of every kind at the desk, and rows to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from tasks_app.models import Membership, Organization

PASSWORD = "a long enough password"


@pytest.fixture(autouse=True)
def _quick_passwords(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _static_root(settings: Any, tmp_path: Path) -> None:
    # WhiteNoise warns when the directory for collected files is not there; a test run collects none.
    settings.STATIC_ROOT = tmp_path


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def organization(db: None) -> Organization:
    return Organization.objects.get(slug="default")


@pytest.fixture
def other_organization(db: None) -> Organization:
    return Organization.objects.create(slug="other", name="Other")


@pytest.fixture
def person(organization: Organization) -> Callable[..., User]:
    """``person("viewer")``: a staff user with that role; ``person(None)``: staff without a membership."""

    def make(role: str | None, organization: Organization = organization, *, staff: bool = True) -> User:
        user = User.objects.create_user(f"{role or 'nobody'}-{User.objects.count()}", password=PASSWORD, is_staff=staff)
        if role:
            Membership.objects.create(organization=organization, user=user, role=role)
        return user

    return make


@pytest.fixture
def desk(person: Callable[..., User]) -> Callable[..., Client]:
    """``desk("viewer")``: a browser in which a fresh person with that role is logged in."""

    def make(role: str | None, *args: Any, **options: Any) -> Client:
        client = Client()
        client.force_login(person(role, *args, **options))
        return client

    return make


@pytest.fixture
def root(db: None) -> Client:
    """A superuser without a membership."""
    client = Client()
    client.force_login(User.objects.create_superuser("root", password=PASSWORD))
    return client
