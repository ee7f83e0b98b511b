"""Principals of actors: who may do what *now*, asked again when a job runs."""

from __future__ import annotations

import time
from uuid import UUID

from django.contrib.auth import get_user_model

from tasks_app.domain import ids
from tasks_app.domain.errors import NotFound, PermissionDenied
from tasks_app.domain.principal import Actor, Principal
from tasks_app.models import ApiKey, Membership

# How long an answer may be used again: a revoked key stops running jobs after this.
_FRESH_S = 5.0
_cache: dict[tuple[Actor, UUID], tuple[float, Principal]] = {}


def of_actor(actor: Actor, organization_id: UUID) -> Principal:
    """The principal of an actor in an organisation, at most 5 s old. Raises `PermissionDenied` when there is none."""
    key = (actor, organization_id)
    known = _cache.get(key)
    if known and known[0] > time.monotonic():
        return known[1]
    principal = _load(actor, organization_id)
    if len(_cache) > 1_000:
        _cache.clear()
    _cache[key] = (time.monotonic() + _FRESH_S, principal)
    return principal


def _load(actor: Actor, organization_id: UUID) -> Principal:
    role: str | None = None
    scopes: tuple[str, ...] = ()
    if actor.type in {"system", "local"}:  # the platform itself, and commands run beside its database
        role = "admin"
    elif actor.type == "user":
        role = _role_of_user(actor.id, organization_id)
    elif actor.type == "api_key":
        try:
            key = ApiKey.objects.filter(
                id=ids.from_text("api_key", actor.id), organization_id=organization_id, revoked_at=None
            ).first()
        except NotFound:
            key = None
        if key:
            role, scopes = key.role, tuple(key.scopes)
    if role is None:
        raise PermissionDenied(f"{actor.type} {actor.id} has no access to this organisation any more.")
    return Principal(actor, organization_id, role, scopes)


def _role_of_user(text: str, organization_id: UUID) -> str | None:
    user = get_user_model().objects.filter(pk=text, is_active=True).first() if text.isdigit() else None
    if user is None:
        return None
    membership = Membership.objects.filter(user=user, organization_id=organization_id)
    # As at the doors (services.access): what a membership says holds for a superuser too.
    return membership.values_list("role", flat=True).first() or ("admin" if user.is_superuser else None)
