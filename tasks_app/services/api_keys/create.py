"""Making a key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from fnmatch import fnmatchcase

from django.db import transaction

from tasks_app.domain import clock, jsonsafe
from tasks_app.domain.errors import InvalidInput, PermissionDenied
from tasks_app.domain.principal import ROLES, Principal
from tasks_app.models import ApiKey
from tasks_app.services import audit
from tasks_app.services.api_keys import secret

_SCOPE = re.compile(r"(\*|[a-z][a-z0-9_]*)(\.(\*|[a-z0-9_]+))*")
_SCOPES_MAX = 50


def create(
    principal: Principal,
    name: str,
    role: str = "operator",
    scopes: Sequence[str] = (),
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """A new key of the caller's organisation and its secret, which is not stored and never shown again.

    ``role``: at most the caller's. ``scopes``: permission patterns such as ``tasks.*``; empty means all of the role.
    Raises `InvalidInput`, `PermissionDenied`.
    """
    principal.require("api_keys.write")
    _check(name, role, scopes, expires_at)
    _check_not_above(principal, role, scopes)
    key, prefix = secret.make()
    with transaction.atomic():
        row = ApiKey.objects.create(
            organization_id=principal.organization_id,
            name=name,
            prefix=prefix,
            key_hash=secret.digest(key),
            role=role,
            scopes=list(scopes),
            expires_at=expires_at,
            created_by_type=principal.actor.type,
            created_by_id=principal.actor.id,
        )
        said = {"name": name, "role": role, "scopes": list(scopes), "expires_at": jsonsafe.clean(expires_at)}
        audit.record(principal, "api_key.create", "api_key", row.public_id, after=said)
    return row, key


def _check(name: str, role: str, scopes: Sequence[str], expires_at: datetime | None) -> None:
    problems = []
    if not name.strip() or len(name) > 200 or jsonsafe.text_problem(name):
        problems.append(("name", "must be 1 to 200 characters of text"))
    if role not in ROLES:
        problems.append(("role", f"must be one of {', '.join(ROLES)}"))
    if len(scopes) > _SCOPES_MAX:
        problems.append(("scopes", f"at most {_SCOPES_MAX}"))
    bad = [scope for scope in scopes if len(scope) > 200 or not _SCOPE.fullmatch(scope)]
    if bad:
        problems.append(("scopes", f"{bad[0][:80]!r} is no permission pattern; write them like tasks.* or seo.scan"))
    if expires_at is not None and expires_at <= clock.now():
        problems.append(("expires_at", "is in the past"))
    if problems:
        listed = "; ".join(f"{field}: {problem}" for field, problem in problems)
        raise InvalidInput(listed, [{"field": field, "problem": problem} for field, problem in problems])


def _check_not_above(principal: Principal, role: str, scopes: Sequence[str]) -> None:
    """Nobody may make a key that can do more than its maker."""
    if ROLES.index(role) > ROLES.index(principal.role):
        raise PermissionDenied(f"Your role is {principal.role}: you cannot make a key with the role {role}.")
    if not principal.scopes:
        return
    wider = [scope for scope in scopes if not any(fnmatchcase(scope, mine) for mine in principal.scopes)]
    if wider or not scopes:
        raise PermissionDenied(
            f"Your key is limited to {', '.join(principal.scopes)}: a new key needs scopes inside these."
        )
