"""The first admin and the first key."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import call_command

from tasks_app.models import ApiKey, AuditEntry, Membership
from tests.api.client import Api

pytestmark = pytest.mark.django_db


def bootstrap() -> dict[str, Any]:
    out = io.StringIO()
    call_command("bootstrap", stdout=out)
    lines = out.getvalue().splitlines()
    assert len(lines) == 1
    found: dict[str, Any] = json.loads(lines[0])
    return found


def test_bootstrap_makes_an_admin_and_a_key_once() -> None:
    first = bootstrap()
    assert set(first) == {"created", "admin_user", "admin_password", "api_key"} and first["created"] is True
    assert authenticate(username=first["admin_user"], password=first["admin_password"]) is not None
    assert Api(first["api_key"]).get("me").json()["role"] == "admin"
    assert Membership.objects.get().role == "admin"
    assert first["api_key"] not in str(list(AuditEntry.objects.values()))

    assert bootstrap() == {"created": False}
    assert get_user_model().objects.count() == 1 and ApiKey.objects.count() == 1
