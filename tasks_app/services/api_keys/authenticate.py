"""From a key to the caller it stands for."""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta

from django.db.models import Q

from tasks_app.domain import clock
from tasks_app.domain.errors import NotAuthenticated
from tasks_app.domain.principal import Actor, Principal
from tasks_app.models import ApiKey
from tasks_app.services.api_keys import secret

# "Last used" is for finding forgotten keys: a write for every request would cost more than the answer is worth.
_NOTE_USE_EVERY = timedelta(minutes=1)


def authenticate(key: str) -> Principal:
    """The principal of an API key. Raises `NotAuthenticated` when it is unknown, expired or revoked."""
    prefix = secret.prefix_of(key)
    row = ApiKey.objects.filter(prefix=prefix).first() if prefix else None
    # Compared also when there is no row, so that the time taken does not tell which prefixes exist.
    known = hmac.compare_digest(secret.digest(key), row.key_hash if row else "0" * 64)
    if row is None or not known:
        raise NotAuthenticated("This API key is not known. Check it, or ask an admin for a new one.")
    now = clock.now()
    if row.revoked_at is not None:
        raise NotAuthenticated("This API key has been revoked. Ask an admin for a new one.")
    if row.expires_at is not None and row.expires_at <= now:
        raise NotAuthenticated("This API key has expired. Ask an admin for a new one.")
    _note_use(row, now)
    return Principal(Actor("api_key", row.public_id), row.organization_id, row.role, tuple(row.scopes))


def _note_use(row: ApiKey, now: datetime) -> None:
    stale = now - _NOTE_USE_EVERY
    if row.last_used_at is None or row.last_used_at < stale:
        unnoted = Q(last_used_at__isnull=True) | Q(last_used_at__lt=stale)
        ApiKey.objects.filter(unnoted, pk=row.pk).update(last_used_at=now)
