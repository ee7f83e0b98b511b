"""Who sits at the desk: which organisations a signed-in user may see, and as which principal they act in one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest

from tasks_app.domain.errors import PermissionDenied
from tasks_app.domain.principal import Actor, Principal
from tasks_app.models import Membership, Organization
from tasks_app.services import access, principals


@dataclass(frozen=True, slots=True)
class Desk:
    """What a user may see.

    ``roles`` maps organisation id -> role; for a superuser also of organisations they are no member of.
    ``everything`` is true for a superuser on a desk with more than one organisation: lists are not narrowed then.
    """

    roles: dict[UUID, str]
    names: dict[UUID, str]
    everything: bool
    default_id: UUID | None

    @property
    def organization_ids(self) -> list[UUID] | None:
        """The organisations queries are narrowed to; None means all of them."""
        return None if self.everything else list(self.roles)

    def narrow(self, rows: QuerySet, field: str = "organization_id") -> QuerySet:
        """``rows`` of the organisations of this desk. One organisation becomes ``=``, which the list indexes serve."""
        if self.everything:
            return rows
        ids = list(self.roles)
        return rows.filter(**{field: ids[0]}) if len(ids) == 1 else rows.filter(**{f"{field}__in": ids})


def desk_of(request: HttpRequest) -> Desk:
    """The desk of the signed-in user, read once a request (two statements)."""
    found = getattr(request, "_desk", None)
    if found is None:
        found = _read_desk(request)
        request.__dict__["_desk"] = found
    return found


def _read_desk(request: HttpRequest) -> Desk:
    user = request.user
    if not (user.is_active and user.is_staff):
        return Desk({}, {}, False, None)
    memberships = Membership.objects.filter(user_id=user.pk).select_related("organization").order_by("created_at", "id")
    roles = {m.organization_id: m.role for m in memberships}
    names = {m.organization_id: m.organization.name for m in memberships}
    default = next(iter(roles), None)
    if user.is_superuser:
        known = Organization.objects.order_by("created_at", "id").values_list("id", "slug", "name")[:200]
        for organization_id, slug, name in known:
            roles.setdefault(organization_id, "admin")
            names[organization_id] = name
            if default is None and slug == access.DEFAULT_ORGANIZATION:
                default = organization_id
        default = default or next(iter(roles), None)
    return Desk(roles, names, user.is_superuser and len(roles) > 1, default)


def principal_of(request: HttpRequest, organization_id: UUID | None = None) -> Principal:
    """The signed-in user as a principal of ``organization_id`` (default: the one the API's session login takes).

    Read once a request and organisation. Raises `PermissionDenied` for an organisation the user does not belong to.
    """
    known: dict[UUID | None, Principal] = request.__dict__.setdefault("_desk_principals", {})
    if organization_id not in known:
        known[organization_id] = replace(
            _principal(request, organization_id),
            request_id=str(getattr(request, "request_id", "")),
            address=str(request.META.get("REMOTE_ADDR", ""))[:64],
        )
    return known[organization_id]


def _principal(request: HttpRequest, organization_id: UUID | None) -> Principal:
    if organization_id is None or organization_id == desk_of(request).default_id:
        return access.principal_of(request.user)
    return principals.of_actor(Actor("user", str(request.user.pk)), organization_id)


def may(request: HttpRequest, permission: str, organization_id: UUID | None = None) -> bool:
    """Whether the signed-in user holds ``permission`` (in the given organisation, or their first)."""
    try:
        return principal_of(request, organization_id).may(permission)
    except PermissionDenied:
        return False
