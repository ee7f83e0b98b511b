"""The gate in front of every view. What a caller may do is decided by services and queries."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from tasks_app.domain.principal import Principal


class HasPrincipal(BasePermission):
    """Somebody known is calling."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return isinstance(request.auth, Principal)
