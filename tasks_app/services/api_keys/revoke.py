"""Ending a key."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from tasks_app.domain import clock, jsonsafe
from tasks_app.domain.errors import NotFound
from tasks_app.domain.principal import Principal
from tasks_app.models import ApiKey
from tasks_app.services import audit


def revoke(principal: Principal, key_id: UUID, reason: str = "") -> ApiKey:
    """Make a key useless from now on; its row stays. Revoking it again changes nothing. Raises `NotFound`."""
    principal.require("api_keys.write")
    with transaction.atomic():
        mine = ApiKey.objects.select_for_update().filter(organization_id=principal.organization_id)
        row = mine.filter(id=key_id).first()
        if row is None:
            raise NotFound("api_key", key_id)
        if row.revoked_at is None:
            row.revoked_at = clock.now()
            row.save(update_fields=["revoked_at"])
            after = {"revoked_at": jsonsafe.clean(row.revoked_at)}
            audit.record(principal, "api_key.revoke", "api_key", row.public_id, reason=reason, after=after)
    return row
