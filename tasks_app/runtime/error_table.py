"""From what an action raises to an error code. The first row that fits decides."""

from __future__ import annotations

import json
import socket
import ssl
import traceback
from typing import Any

import requests
from django.core.exceptions import ObjectDoesNotExist
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import IntegrityError, InterfaceError, OperationalError
from pydantic import ValidationError

from tasks_app.domain import jsonsafe
from tasks_app.domain.errors import ActionError, DevosError
from tasks_app.domain.outcomes import ErrorInfo

_MESSAGE_MAX = 4_000
_TRACEBACK_MAX = 20_000

# (exception types, code). Whether a code is retried is up to the action's policy (domain/retry).
TABLE: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((requests.exceptions.SSLError, ssl.SSLError), "TLS_ERROR"),
    ((requests.Timeout, socket.timeout, TimeoutError), "NETWORK_TIMEOUT"),
    ((requests.ConnectionError, ConnectionError, socket.gaierror), "CONNECTION_RESET"),
    ((OperationalError, InterfaceError), "TEMPORARY_DATABASE_ERROR"),
    ((IntegrityError,), "DATABASE_CONFLICT"),
    ((DjangoPermissionDenied, PermissionError), "PERMISSION_DENIED"),
    ((DjangoValidationError, ValidationError), "INVALID_INPUT"),
    ((ObjectDoesNotExist, FileNotFoundError), "NOT_FOUND"),
    ((MemoryError,), "OUT_OF_MEMORY"),
    ((RecursionError,), "RECURSION_LIMIT"),
    ((json.JSONDecodeError,), "INVALID_RESPONSE"),
)


def describe(error: BaseException) -> ErrorInfo:
    """The error as it is stored: code, message, details, what it says about retrying, and the traceback."""
    code, retryable, retry_after_s, details = _classify(error)
    message = jsonsafe.clean_text(str(getattr(error, "message", "") or error) or type(error).__name__)
    return ErrorInfo(
        code,
        message[:_MESSAGE_MAX],
        jsonsafe.clean(details),
        retryable,
        retry_after_s,
        jsonsafe.clean_text("".join(traceback.format_exception(error)))[-_TRACEBACK_MAX:],
    )


def _classify(error: BaseException) -> tuple[str, bool | None, float | None, Any]:
    if isinstance(error, ActionError):
        return error.code, error.retryable, error.retry_after_s, error.details
    if isinstance(error, DevosError):
        return error.code, error.status >= 500, None, error.details
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return _http(error.response)
    for types, code in TABLE:
        if isinstance(error, types):
            return code, None, None, None
    return "ACTION_ERROR", None, None, {"exception": type(error).__name__}


def _http(response: requests.Response) -> tuple[str, bool | None, float | None, Any]:
    details = {"status": response.status_code}
    if response.status_code in {429, 503}:
        code = "RATE_LIMIT" if response.status_code == 429 else "TEMPORARY_UNAVAILABLE"
        return code, None, retry_after(response.headers.get("Retry-After")), details
    if response.status_code >= 500:
        return "TEMPORARY_UNAVAILABLE", None, None, details
    named = {401: "AUTHENTICATION_FAILED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}.get(response.status_code)
    return named or "HTTP_ERROR", False, None, details


def retry_after(value: str | None) -> float | None:
    """Seconds of a Retry-After header in its numeric form; None for anything else."""
    try:
        seconds = float(value) if value else None
    except ValueError:
        return None
    return seconds if seconds is not None and 0 <= seconds < 1e7 else None
