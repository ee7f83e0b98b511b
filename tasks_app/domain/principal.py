"""Who asks, and what they may do. One policy for every door and for the worker."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from uuid import UUID

from tasks_app.domain.errors import PermissionDenied

ROLES = ("viewer", "operator", "admin")

# Reading is for everybody inside the organisation, writing for operators; these are for admins only.
_ADMIN = frozenset({"projects.write", "api_keys.write", "queues.write", "audit.read"})


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it: ``type`` is user, api_key, system, schedule, plugin or agent; ``id`` names the one of that type."""

    type: str
    id: str


SYSTEM = Actor("system", "devos")


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller inside one organisation.

    ``scopes`` narrow a key further: patterns such as ``tasks.*`` or ``seo.scan``; empty means all of the role.
    ``request_id`` and ``address`` go into the audit.
    """

    actor: Actor
    organization_id: UUID
    role: str
    scopes: tuple[str, ...] = ()
    request_id: str = ""
    address: str = ""
    correlation_id: str = field(default="")

    def may(self, permission: str, *, dangerous: bool = False) -> bool:
        """Whether the caller holds ``permission``. An action's own permission needs operator, a dangerous one admin."""
        rank = ROLES.index(self.role)
        if permission.endswith(".read") and permission not in _ADMIN:
            needed = 0
        elif permission in _ADMIN or dangerous:
            needed = 2
        else:
            needed = 1
        return rank >= needed and (not self.scopes or any(fnmatchcase(permission, scope) for scope in self.scopes))

    def require(self, permission: str, *, dangerous: bool = False) -> None:
        """Raise `PermissionDenied` unless the caller holds ``permission``."""
        if not self.may(permission, dangerous=dangerous):
            what = f"{permission} (dangerous: needs the admin role)" if dangerous else permission
            raise PermissionDenied(f"This needs the permission {what}; your role is {self.role}. Ask an admin for it.")
