"""Every error of the REST door in one shape: ``{code, message, details, request_id}``."""

from __future__ import annotations

from typing import Any

import structlog
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions

from tasks_app.domain import jsonsafe
from tasks_app.domain.errors import DevosError

log = structlog.get_logger(__name__)

_CODES: dict[int, str] = {
    400: "INVALID_INPUT",
    401: "NOT_AUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    406: "NOT_ACCEPTABLE",
    413: "PAYLOAD_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    429: "THROTTLED",
    500: "INTERNAL_ERROR",
    503: "UNAVAILABLE",
}
_UNEXPECTED = "Something went wrong on our side. It has been logged under this request id."
_UNAVAILABLE = "The database does not answer. Nothing was lost; try again in a moment."
UNKNOWN_ADDRESS = "There is nothing at this address. /api/docs/ lists what there is."


class Throttled(DevosError):
    """Too many requests, or too many at once. ``wait_s``: seconds until it makes sense to try again."""

    code = "THROTTLED"
    status = 429

    def __init__(self, message: str, wait_s: int) -> None:
        super().__init__(message, {"retry_after_s": wait_s})
        self.wait_s = wait_s


def body(status: int, message: str, *, code: str = "", details: Any = None, request_id: str = "") -> dict[str, Any]:
    """The one shape."""
    return {
        "code": code or _CODES.get(status, "ERROR"),
        "message": jsonsafe.clean_text(message),
        "details": jsonsafe.clean(details),
        "request_id": request_id,
    }


def as_response(status: int, message: str, request: HttpRequest) -> JsonResponse:
    """The one shape for what never reached a view."""
    return JsonResponse(body(status, message, request_id=getattr(request, "request_id", "")), status=status)


def exception_handler(error: Exception, context: dict[str, Any]) -> JsonResponse:
    """REST framework's hook: the answer to whatever a view raised, in JSON also where the view renders YAML or HTML."""
    request = context["request"]
    request_id = getattr(request, "request_id", "")
    status, said, headers = _read(error)
    if status >= 500:
        got_request_exception.send(sender=exception_handler, request=request)
        log.error("api.unexpected_error", path=request.path, method=request.method, exc_info=error)
    return JsonResponse(body(status, **said, request_id=request_id), status=status, headers=headers)


def _read(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, words and headers of an error. Whatever is not expected says nothing about itself."""
    if isinstance(error, Throttled):
        said = {"message": error.message, "code": error.code, "details": error.details}
        return error.status, said, {"Retry-After": str(error.wait_s)}
    if isinstance(error, DevosError) and error.status < 500:
        headers = {"WWW-Authenticate": "Api-Key"} if error.status == 401 else {}
        return error.status, {"message": error.message, "code": error.code, "details": error.details}, headers
    if isinstance(error, exceptions.APIException):
        return error.status_code, {"message": _words(error)}, _headers(error)
    if isinstance(error, Http404):
        return 404, {"message": UNKNOWN_ADDRESS}, {}
    if isinstance(error, DjangoPermissionDenied):
        return 403, {"message": str(error) or "This is not allowed."}, {}
    if isinstance(error, OperationalError | InterfaceError):
        return 503, {"message": _UNAVAILABLE}, {"Retry-After": "2"}
    return 500, {"message": _UNEXPECTED}, {}


def _words(error: exceptions.APIException) -> str:
    if isinstance(error, exceptions.NotAuthenticated):
        return "Sign in, or send the header `Authorization: Api-Key <key>`."
    if isinstance(error, exceptions.UnsupportedMediaType):
        return "Send JSON with the header `Content-Type: application/json`."
    return str(error.detail)


def _headers(error: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if auth_header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = auth_header
    if (wait := getattr(error, "wait", None)) is not None:
        headers["Retry-After"] = str(max(1, round(wait)))
    return headers
