"""From a Django user to the caller it stands for: the same answer for the admin and for the API's session login."""

from __future__ import annotations

from typing import Any

from tasks_app.domain.errors import PermissionDenied
from tasks_app.domain.principal import Actor, Principal
from tasks_app.models import Membership, Organization
from tasks_app.services.setup import DEFAULT_ORGANIZATION

__all__ = ["DEFAULT_ORGANIZATION", "principal_of"]


def principal_of(user: Any) -> Principal:
    """The principal of an authenticated user: the oldest membership decides organisation and role.

    A superuser without one is an admin of the default organisation. Raises `PermissionDenied` for a user who belongs
    nowhere.
    """
    actor = Actor("user", str(user.pk))
    membership = Membership.objects.filter(user_id=user.pk).order_by("created_at", "id").first()
    if membership is not None:
        return Principal(actor, membership.organization_id, membership.role)
    if user.is_superuser:
        default = Organization.objects.filter(slug=DEFAULT_ORGANIZATION).values_list("id", flat=True).first()
        if default is not None:
            return Principal(actor, default, "admin")
    raise PermissionDenied("You belong to no organisation. Ask an admin to add you to one.")
