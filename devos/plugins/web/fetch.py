"""One URL, fetched once: an answer or a named failure, never an exception for what the network does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import requests

from devos.plugins.network_errors import brief, error_code
from tasks_app.sdk import ActionError, outbound

_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml", ""})
# Servers that refuse HEAD say so with these; the link may still be fine.
_HEAD_REFUSED = frozenset({400, 403, 404, 405, 501, 503})


@dataclass(frozen=True)
class Fetched:
    """What came back for ``url``. ``status`` is None and ``error`` a code when nothing usable did.

    ``size``: bytes of the decoded body, or what Content-Length says when the body was not read.
    ``failure``: the exception behind ``error``, for a caller that wants to raise it after all.
    """

    url: str
    status: int | None = None
    error: str | None = None
    message: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    truncated: bool = False
    size: int | None = None
    elapsed_ms: float = 0.0
    first_byte_ms: float = 0.0
    content_type: str = ""
    location: str | None = None
    failure: Exception | None = field(default=None, repr=False, compare=False)

    @property
    def is_html(self) -> bool:
        return self.status is not None and 200 <= self.status < 300 and self.content_type in _HTML_TYPES


@dataclass(frozen=True)
class Fetcher:
    """Fetches for one scan. ``timeout_s``: for each URL in all. ``max_bytes``: of a decoded page."""

    client: outbound.Client
    timeout_s: float
    max_bytes: int
    verify: bool

    def page(self, url: str) -> Fetched:
        """GET ``url`` without following redirects; only the body of an HTML page is read."""
        return self._fetch("GET", url, follow=False)

    def link(self, url: str) -> Fetched:
        """Whether a foreign ``url`` works: HEAD, then GET where HEAD is refused; redirects are followed."""
        answer = self._fetch("HEAD", url, follow=True)
        return self._fetch("GET", url, follow=True) if answer.status in _HEAD_REFUSED else answer

    def _fetch(self, method: str, url: str, *, follow: bool) -> Fetched:
        try:
            answer = self.client.request(
                method,
                url,
                headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.5"},
                timeout_s=self.timeout_s,
                max_bytes=self.max_bytes,
                follow_redirects=follow,
                verify=self.verify,
                accept_body=lambda status, headers: not follow and _worth_reading(status, headers),
            )
        except ActionError as error:
            return Fetched(url, error=error.code, message=error.message, failure=error)
        except requests.RequestException as error:
            return Fetched(url, error=error_code(error), message=brief(error), failure=error)
        return Fetched(
            url,
            status=answer.status,
            headers=answer.headers,
            body=answer.body,
            truncated=answer.truncated,
            size=_size(answer),
            elapsed_ms=answer.elapsed_ms,
            first_byte_ms=answer.first_byte_ms,
            content_type=answer.media_type,
            location=answer.headers.get("location"),
        )


def _worth_reading(status: int, headers: Mapping[str, str]) -> bool:
    kind = headers.get("content-type", "").split(";", 1)[0].strip().lower()
    return kind in _HTML_TYPES and (200 <= status < 300)


def _size(answer: outbound.OutboundResponse) -> int | None:
    if not answer.skipped:
        return len(answer.body)
    declared = answer.headers.get("content-length", "")
    return int(declared) if declared.isascii() and declared.isdigit() and len(declared) < 16 else None
