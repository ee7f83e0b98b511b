"""Reading the caller's organisation."""

from __future__ import annotations

from tasks_app.domain.errors import NotFound
from tasks_app.domain.principal import Principal
from tasks_app.models import Organization


def mine(principal: Principal) -> Organization:
    """The organisation of the caller. Raises `NotFound` when it has gone meanwhile."""
    found = Organization.objects.filter(id=principal.organization_id).first()
    if found is None:
        raise NotFound("organization", principal.organization_id)
    return found
