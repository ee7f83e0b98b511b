"""Names for what goes wrong on the network, for actions that report it instead of failing."""

from __future__ import annotations

import requests
from urllib3.exceptions import NameResolutionError


def error_code(error: requests.RequestException) -> str:
    """A stable code for what went wrong."""
    if isinstance(error, requests.exceptions.SSLError):
        return "TLS_ERROR"
    if isinstance(error, requests.exceptions.Timeout):
        return "NETWORK_TIMEOUT"
    if isinstance(error, requests.exceptions.ContentDecodingError):
        return "BROKEN_ENCODING"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "CONNECTION_RESET"
    if isinstance(error, requests.exceptions.ConnectionError):
        return "NAME_NOT_RESOLVED" if isinstance(_reason(error), NameResolutionError) else "CONNECTION_FAILED"
    return "REQUEST_FAILED"


def brief(error: requests.RequestException) -> str:
    """What went wrong in a line, without the wrapping of the library."""
    return str(_reason(error) or error)[:300]


def _reason(error: requests.RequestException) -> object:
    return getattr(error.args[0] if error.args else None, "reason", None)
