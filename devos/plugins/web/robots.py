"""robots.txt by RFC 9309: one file for each origin, fetched once in a scan."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import requests
from protego import Protego

from devos.plugins.web.urls import normalise, origin
from tasks_app.sdk import ActionError, outbound

# The RFC asks a crawler to read at least 500 KiB; more is cut.
_MAX_BYTES = 512_000
_MAX_REDIRECTS = 5

State = Literal["found", "missing", "unreachable", "ignored"]


@dataclass(frozen=True)
class Robots:
    """The rules of one origin. *missing* (4xx) allows everything, *unreachable* (5xx, no answer) nothing.

    ``failure``: the exception when there was no answer at all.
    """

    state: State
    rules: Protego | None = None
    status: int | None = None
    failure: Exception | None = None

    def allows(self, url: str, user_agent: str) -> bool:
        """Whether ``user_agent`` may fetch ``url``."""
        if self.rules is None:
            return self.state != "unreachable"
        return bool(self.rules.can_fetch(url, user_agent))

    def crawl_delay_s(self, user_agent: str) -> float:
        """Seconds the site asks for between two requests; 0 when it asks for none."""
        delay = float((self.rules.crawl_delay(user_agent) if self.rules else None) or 0)
        return max(delay, 0.0) if math.isfinite(delay) else 0.0

    def sitemaps(self, url: str) -> list[str]:
        """Sitemaps named in the file that was fetched for ``url``, normalised."""
        named = self.rules.sitemaps if self.rules else ()
        return [found for text in named if (found := normalise(text, url))]


def fetch_robots(client: outbound.Client, url: str, *, timeout_s: float, verify: bool) -> Robots:
    """The rules for the origin of ``url``. Never raises for what the network does; an interrupt passes through."""
    try:
        answer = client.request(
            "GET",
            origin(url) + "/robots.txt",
            timeout_s=timeout_s,
            max_bytes=_MAX_BYTES,
            follow_redirects=True,
            max_redirects=_MAX_REDIRECTS,
            verify=verify,
        )
    except requests.RequestException as error:
        return Robots("unreachable", failure=error)
    except ActionError as error:
        # Too long a chain of redirects means "unavailable" in the RFC, which is the same as missing.
        return Robots("missing") if error.code == "TOO_MANY_REDIRECTS" else Robots("unreachable", failure=error)
    if answer.status >= 500:
        return Robots("unreachable", status=answer.status)
    if answer.status >= 300:
        return Robots("missing", status=answer.status)
    # utf-8-sig: a byte order mark would hide the first line.
    return Robots("found", Protego.parse(answer.body.decode("utf-8-sig", "replace")), answer.status)
