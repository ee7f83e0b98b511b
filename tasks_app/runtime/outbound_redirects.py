"""URLs as the outbound client takes them, and what a redirect makes of a request."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import requests
from requests.structures import CaseInsensitiveDict

from tasks_app.domain.errors import ActionError

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
TIED_TO_HOST = frozenset({"authorization", "cookie", "proxy-authorization"})
_TIED_TO_BODY = frozenset({"content-type", "content-length", "content-encoding", "transfer-encoding"})


def shown(url: str) -> str:
    """``url`` without user name and password, fit for logs and outputs."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def split_credentials(url: str) -> tuple[str, str | None]:
    """The URL without its user name and password, and what they say as a Basic Authorization header."""
    check_url(url)
    parts = urlsplit(url)
    if parts.username is None and parts.password is None:
        return url, None
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return shown(url), "Basic " + base64.b64encode(pair.encode()).decode()


def check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ActionError("INVALID_URL", f"not a URL: {error}", retryable=False) from error
    if parts.scheme.lower() not in {"http", "https"}:
        raise ActionError(
            "ADDRESS_REFUSED",
            f"scheme {parts.scheme[:20]!r} may not be called; use an http:// or https:// URL",
            retryable=False,
        )
    if not host:
        raise ActionError("INVALID_URL", "the URL names no host", retryable=False)


def redirect_target(base: str, location: str) -> str:
    # http.client gives header bytes as latin-1; servers send UTF-8.
    try:
        location = location.encode("latin-1").decode("utf-8")
    except UnicodeError:
        pass
    try:
        return urljoin(base, location.strip())
    except ValueError as error:
        raise ActionError("INVALID_URL", f"redirect to something that is no URL: {error}", retryable=False) from error


def next_request(
    plan: requests.Request,
    prepared: requests.PreparedRequest,
    status: int,
    target: str,
    tied_to_host: frozenset[str],
) -> requests.Request:
    """The request of the next hop, as browsers do it: 303 (and 301, 302 after POST) become GET and lose the body."""
    clean_target, credentials = split_credentials(target)
    method, headers = plan.method, CaseInsensitiveDict(plan.headers)
    body: dict[str, Any] = {"data": plan.data, "json": plan.json}
    if (status == 303 and method != "HEAD") or (status in {301, 302} and method == "POST"):
        method, body = "GET", {}
        headers = _without(headers, _TIED_TO_BODY)
    if _leaves_host(prepared.url or "", clean_target):
        headers = _without(headers, tied_to_host)
    if credentials:
        headers["Authorization"] = credentials
    return requests.Request(method, clean_target, headers=headers, **body)


def _without(headers: CaseInsensitiveDict[str], names: frozenset[str]) -> CaseInsensitiveDict[str]:
    return CaseInsensitiveDict({name: value for name, value in headers.items() if name.lower() not in names})


def _leaves_host(before: str, after: str) -> bool:
    """Whether secrets for ``before`` must not be sent to ``after``. Only http to https on one host is no leaving."""
    old, new = urlsplit(before), urlsplit(after)
    if old.hostname != new.hostname:
        return True
    default = {"http": 80, "https": 443}
    old_port, new_port = old.port or default.get(old.scheme), new.port or default.get(new.scheme)
    if (old.scheme, old_port, new.scheme, new_port) == ("http", 80, "https", 443):
        return False
    return (old.scheme, old_port) != (new.scheme, new_port)
