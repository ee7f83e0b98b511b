"""`manage.py bootstrap`: the first admin and the first key, made once and printed once."""

from __future__ import annotations

import json
import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand
from django.db import connection, transaction

from tasks_app.domain.principal import SYSTEM, Principal
from tasks_app.models import Membership, Organization
from tasks_app.services import api_keys, setup

ADMIN = "admin"
# Two starts at the same moment must not both make an admin: any number, the same everywhere.
_LOCK = 7_236_101


class Command(BaseCommand):
    help = (
        'Create the user "admin" with a generated password and an API key with the role admin. Prints one line of '
        'JSON: {"created": true, "admin_user", "admin_password", "api_key"}, or {"created": false} when they exist.'
    )

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(json.dumps(_bootstrap()))


@transaction.atomic
def _bootstrap() -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute("select pg_advisory_xact_lock(%s)", [_LOCK])
    users = get_user_model().objects
    if users.filter(username=ADMIN).exists():
        return {"created": False}
    setup.ensure_defaults()
    organization = Organization.objects.get(slug=setup.DEFAULT_ORGANIZATION)
    password = secrets.token_urlsafe(18)
    user = users.create_superuser(ADMIN, password=password)
    Membership.objects.create(organization=organization, user=user, role="admin")
    _, key = api_keys.create(Principal(SYSTEM, organization.id, "admin"), "First key of the installation", "admin")
    return {"created": True, "admin_user": ADMIN, "admin_password": password, "api_key": key}
