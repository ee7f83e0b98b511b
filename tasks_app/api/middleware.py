"""What every request gets: an id, a correlation id, and under /api/ errors in one shape."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import structlog
from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

from tasks_app.api import errors
from tasks_app.domain import ids

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_CORRELATION_ID = re.compile(r"[A-Za-z0-9._:/@+-]{1,128}")
_WORDS = {
    400: "The request cannot be understood.",
    403: "This is not allowed.",
    404: errors.UNKNOWN_ADDRESS,
    413: "The request body is too large.",
}


def _begin(request: Any) -> None:
    given = request.META.get("HTTP_X_REQUEST_ID", "")
    request.request_id = given if _REQUEST_ID.fullmatch(given) else ids.new_id().hex
    correlation = request.META.get("HTTP_X_CORRELATION_ID", "")
    request.correlation_id = correlation if _CORRELATION_ID.fullmatch(correlation) else ""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=request.request_id)
    if request.correlation_id:
        structlog.contextvars.bind_contextvars(correlation_id=request.correlation_id)
    # `/api/tasks/` is `/api/tasks`. Not by a redirect: a client would send its POST again as a GET.
    if _is_api(request) and request.path_info.endswith("/"):
        request.path_info = request.path_info.rstrip("/")
    if request.path_info == "/api":
        request.path_info = "/api/"


def _end(request: Any, response: HttpResponse) -> HttpResponse:
    if _is_api(request) and response.status_code >= 400:
        is_ours = response.headers.get("Content-Type", "").startswith("application/json")
        if not is_ours:
            words = _WORDS.get(response.status_code, "The request failed. It has been logged under this request id.")
            response = errors.as_response(response.status_code, words, request)
    response.headers["X-Request-Id"] = request.request_id
    if request.correlation_id:
        response.headers["X-Correlation-Id"] = request.correlation_id
    return response


def _is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/") or request.path_info == "/api"


@sync_and_async_middleware
def RequestContextMiddleware(get_response: Callable[..., Any]) -> Callable[..., Any]:  # noqa: N802 - named in settings
    """Put ``request_id`` and ``correlation_id`` on the request, into the logs and into the answer's headers."""
    if iscoroutinefunction(get_response):

        async def middleware(request: HttpRequest) -> HttpResponse:
            _begin(request)
            return _end(request, await get_response(request))

        return middleware

    def middleware_sync(request: HttpRequest) -> HttpResponse:
        _begin(request)
        return _end(request, get_response(request))

    return middleware_sync
