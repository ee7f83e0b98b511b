"""Who is calling: a key, a session, or this very process. Each answers a `Principal` as ``request.auth``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from tasks_app.domain.errors import NotAuthenticated
from tasks_app.domain.principal import Principal
from tasks_app.services import access, api_keys

IN_PROCESS_KEY = "devos.principal"
_SCHEME = "api-key"


def _placed(principal: Principal, request: Request) -> Principal:
    """The principal with where this request comes from, for the audit."""
    return replace(
        principal,
        request_id=getattr(request, "request_id", ""),
        correlation_id=getattr(request, "correlation_id", "") or principal.correlation_id,
        address=str(request.META.get("REMOTE_ADDR") or "")[:64],
    )


class InProcessAuthentication(BaseAuthentication):
    """A caller inside this process hands its Principal over in the environ. A header cannot: headers are only text."""

    def authenticate(self, request: Request) -> tuple[None, Principal] | None:
        principal = request.META.get(IN_PROCESS_KEY)
        return (None, _placed(principal, request)) if isinstance(principal, Principal) else None

    def authenticate_header(self, request: Request) -> str:
        # The first class in the list decides between 401 and 403.
        return "Api-Key"


class ApiKeyAuthentication(BaseAuthentication):
    """``Authorization: Api-Key <key>``."""

    def authenticate(self, request: Request) -> tuple[None, Principal] | None:
        scheme, _, key = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if not scheme:
            return None
        if scheme.lower() != _SCHEME or not key.strip():
            raise NotAuthenticated("This door takes `Authorization: Api-Key <key>`.")
        return None, _placed(api_keys.authenticate(key.strip()), request)

    def authenticate_header(self, request: Request) -> str:
        return "Api-Key"


class SessionPrincipalAuthentication(SessionAuthentication):
    """A signed-in user of the admin, with CSRF protection."""

    def authenticate(self, request: Request) -> tuple[Any, Principal] | None:
        signed_in = super().authenticate(request)
        if signed_in is None:
            return None
        user = signed_in[0]
        return user, _placed(access.principal_of(user), request)
