"""What every answer of the desk carries: a content security policy; and a limit on login attempts."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from tasks_app.queries import cached

# No inline script and nothing from elsewhere. Alpine, which the admin's looks are built on, compiles the expressions in
# its attributes, so 'unsafe-eval' cannot go; its inline styles need 'unsafe-inline' for styles only.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
_UNITS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "hour": 3600, "d": 86_400, "day": 86_400}


def parse_rate(rate: str) -> tuple[int, int]:
    """``"20/min"`` -> (20, 60). Raises ValueError for anything else."""
    found = re.fullmatch(r"(\d+)/([a-z]+)", rate.strip())
    if not found or found.group(2) not in _UNITS:
        raise ValueError(f"{rate!r} is no rate; write it like 20/min")
    return int(found.group(1)), _UNITS[found.group(2)]


class DeskMiddleware:
    """Guards everything under the admin's address."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        # A rate that cannot be read stops the process at its start, not the first login.
        parse_rate(settings.DEVOS.login_rate)
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        root = reverse("admin:index")
        if not request.path.startswith(root):
            return self.get_response(request)
        response = self._too_many(request) or self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        response.headers.setdefault("Referrer-Policy", "same-origin")
        return response

    def _too_many(self, request: HttpRequest) -> HttpResponse | None:
        """The refusal of a login from an address that tries too often, or None."""
        if request.method != "POST" or request.path != reverse("admin:login"):
            return None
        allowed, window_s = parse_rate(settings.DEVOS.login_rate)
        tries = cached.count_up(f"login-{request.META.get('REMOTE_ADDR', '')}", window_s)
        if tries <= allowed:
            return None
        answer = render(request, "admin/desk/too_many_logins.html", {"wait_s": window_s}, status=429)
        answer.headers["Retry-After"] = str(window_s)
        return answer
