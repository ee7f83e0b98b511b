"""The one guarded way out for actions: HTTP requests and TCP connections to addresses that are allowed.

``outbound.request("GET", url)`` for one request, ``outbound.Client()`` to keep connections. Every name is resolved
once, every address checked, and the checked address connected to (see `outbound_transport`). Redirects are followed
only when asked, by hand, with the check at each hop. Time is capped in all, not only between bytes; size is capped
after decompression. Nothing is read from the environment: no proxies, no netrc.

Refusals raise `ActionError` ADDRESS_REFUSED, INVALID_URL or TOO_MANY_REDIRECTS (not retryable). Other failures are
those of ``requests`` (ConnectTimeout, ReadTimeout, ConnectionError, SSLError ...), which the runtime maps to codes.
"""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import requests
import urllib3
from django.conf import settings
from requests.cookies import extract_cookies_to_jar
from requests.structures import CaseInsensitiveDict

from tasks_app.domain.errors import ActionError
from tasks_app.runtime.outbound_addresses import (
    Resolver,
    checked_addresses,
    refuse_unless_allowed,
    system_resolver,
)
from tasks_app.runtime.outbound_redirects import (
    REDIRECT_STATUSES,
    TIED_TO_HOST,
    check_url,
    next_request,
    redirect_target,
    shown,
    split_credentials,
)
from tasks_app.runtime.outbound_transport import Gate, GuardedAdapter, Watch

MAX_BYTES = 10_000_000
CONNECT_TIMEOUT_S = 10.0
USER_AGENT = "DevOS/1.0"
_CHUNK = 32_768
_PASSED_OVER_MAX = 65_536


class OutboundInterrupted(Exception):
    """The request was cut short because the ``interrupted`` function of its client said so."""


@dataclass(frozen=True)
class Hop:
    """One redirect that was followed. ``elapsed_ms``: until its headers had come."""

    url: str
    status: int
    location: str
    elapsed_ms: float


@dataclass(frozen=True)
class OutboundResponse:
    """What came back. ``url`` is where it came from in the end, without user name and password.

    ``body``: decoded bytes, at most ``max_bytes``; ``truncated`` says there was more. ``skipped``: ``accept_body``
    declined the body. ``elapsed_ms``: everything; ``first_byte_ms``: until the headers of the last hop.
    ``peer_certificate``: the server's certificate (DER) when the connection was TLS.
    """

    status: int
    reason: str
    url: str
    headers: CaseInsensitiveDict[str]
    body: bytes
    truncated: bool
    skipped: bool
    elapsed_ms: float
    first_byte_ms: float
    history: list[Hop] = field(default_factory=list)
    peer_address: str | None = None
    peer_certificate: bytes | None = None

    @property
    def media_type(self) -> str:
        """The content type without parameters, lower case; empty when the server named none."""
        return self.headers.get("content-type", "").split(";", 1)[0].strip().lower()

    def text(self) -> str:
        """The body as text: in the charset of the content type when Python knows it, else UTF-8; bad bytes replaced."""
        declared = requests.utils.get_encoding_from_headers(self.headers) or "utf-8"
        named = "charset" in self.headers.get("content-type", "").lower()
        try:
            return self.body.decode(declared if named else "utf-8", "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")


AcceptBody = Callable[[int, Mapping[str, str]], bool]


def _allow_private_by_settings() -> bool:
    return bool(settings.DEVOS.allow_private_addresses)


@dataclass(frozen=True)
class _Limits:
    timeout_s: float
    max_bytes: int
    max_redirects: int | None  # None: do not follow
    verify: bool | str
    accept_body: AcceptBody | None
    tied_to_host: frozenset[str]


class Client:
    """Keeps connections and cookies between requests. For one thread at a time; close it, or use it as a context.

    ``allow_private``: overrides the setting (for tests). ``resolver``: how names become addresses. ``interrupted``:
    asked ten times a second while a request runs; True ends it with `OutboundInterrupted` (``lambda: ctx.cancelled``).
    """

    def __init__(
        self,
        *,
        allow_private: bool | None = None,
        resolver: Resolver = system_resolver,
        interrupted: Callable[[], bool] | None = None,
        user_agent: str = USER_AGENT,
    ) -> None:
        policy = _allow_private_by_settings if allow_private is None else lambda: allow_private
        self._gate = Gate(policy, resolver)
        self._interrupted = interrupted
        self._adapter = GuardedAdapter(self._gate)
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers.update({"User-Agent": user_agent, "Accept-Encoding": "gzip, deflate"})

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every kept connection."""
        self._adapter.close()
        self._session.close()

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        data: bytes | str | Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
        max_bytes: int = MAX_BYTES,
        follow_redirects: bool = False,
        max_redirects: int = 10,
        verify: bool | str = True,
        accept_body: AcceptBody | None = None,
        secret_headers: frozenset[str] = frozenset(),
    ) -> OutboundResponse:
        """Send one request and read its answer.

        ``timeout_s``: for everything, redirects and body included. ``max_bytes``: of the decoded body; more is cut.
        ``verify``: True, False or the path of a CA bundle. ``accept_body``: given status and headers, whether to read
        the body. ``secret_headers``: names that, like Authorization and Cookie, are dropped when a redirect leaves the
        host. Raises `ActionError`, `OutboundInterrupted` or an exception of ``requests``.
        """
        clean_url, credentials = split_credentials(url)
        sent = CaseInsensitiveDict(headers or {})
        if credentials and "authorization" not in sent:
            sent["Authorization"] = credentials
        plan = requests.Request(method.upper(), clean_url, headers=sent, params=params, json=json, data=data)
        limits = _Limits(
            timeout_s=timeout_s,
            max_bytes=max_bytes,
            max_redirects=max_redirects if follow_redirects else None,
            verify=verify,
            accept_body=accept_body,
            tied_to_host=TIED_TO_HOST | {name.lower() for name in secret_headers},
        )
        with Watch(timeout_s, self._interrupted) as watch:
            self._gate.watch = watch
            try:
                return self._exchange(plan, watch, limits)
            except (requests.RequestException, OSError) as error:
                _raise_if_fired(watch, timeout_s, error)
                raise
            except (urllib3.exceptions.HTTPError, http.client.HTTPException) as error:
                # The few that requests lets through; callers shall have one family to catch.
                _raise_if_fired(watch, timeout_s, error)
                raise requests.ConnectionError(f"{type(error).__name__}: {error}") from error
            finally:
                self._gate.watch = None

    def _exchange(self, plan: requests.Request, watch: Watch, limits: _Limits) -> OutboundResponse:
        started = time.monotonic()
        history: list[Hop] = []
        while True:
            hop_started = time.monotonic()
            prepared, response = self._send(plan, watch, limits.verify)
            first_byte_ms = _ms_since(hop_started)
            location = response.headers.get("location") if response.status_code in REDIRECT_STATUSES else None
            if limits.max_redirects is None or location is None:
                break
            with response:
                # Read a short body so that the connection can be used again; close after a long one.
                _read(response, _PASSED_OVER_MAX)
            target = redirect_target(prepared.url or "", location)
            history.append(Hop(shown(prepared.url or ""), response.status_code, shown(target), first_byte_ms))
            if len(history) > limits.max_redirects:
                raise _too_many(limits.max_redirects, history)
            plan = next_request(plan, prepared, response.status_code, target, limits.tied_to_host)
        with response:
            declined = limits.accept_body is not None and not limits.accept_body(response.status_code, response.headers)
            body, truncated = _read(response, limits.max_bytes) if not declined else _drain(response)
        _raise_if_fired(watch, limits.timeout_s, None)
        return OutboundResponse(
            status=response.status_code,
            reason=response.reason or "",
            url=shown(prepared.url or ""),
            headers=response.headers,
            body=body,
            truncated=truncated,
            skipped=declined,
            elapsed_ms=_ms_since(started),
            first_byte_ms=first_byte_ms,
            history=history,
            peer_address=self._gate.peer_address,
            peer_certificate=self._gate.peer_certificate,
        )

    def _send(
        self, plan: requests.Request, watch: Watch, verify: bool | str
    ) -> tuple[requests.PreparedRequest, requests.Response]:
        check_url(plan.url)
        try:
            prepared = self._session.prepare_request(plan)
        except (requests.exceptions.InvalidURL, requests.exceptions.MissingSchema, UnicodeError) as error:
            raise ActionError("INVALID_URL", f"{shown(plan.url)}: {error}", retryable=False) from error
        # The session's own send() would read the whole body of a redirect to prepare the next request.
        response = self._adapter.send(
            prepared,
            stream=True,
            timeout=(min(CONNECT_TIMEOUT_S, watch.remaining_s()), watch.remaining_s()),
            verify=verify,
        )
        extract_cookies_to_jar(self._session.cookies, prepared, response.raw)
        return prepared, response


def request(method: str, url: str, **options: Any) -> OutboundResponse:
    """`Client.request` on a client of its own, with the options of both."""
    own = {
        name: options.pop(name)
        for name in ("allow_private", "resolver", "interrupted", "user_agent")
        if name in options
    }
    with Client(**own) as client:
        return client.request(method, url, **options)


def open_connection(
    host: str,
    port: int,
    *,
    timeout_s: float = CONNECT_TIMEOUT_S,
    allow_private: bool | None = None,
    resolver: Resolver = system_resolver,
) -> socket.socket:
    """A TCP connection to a checked address of ``host``, for actions that speak another protocol.

    Raises `ActionError` ADDRESS_REFUSED, socket.gaierror, TimeoutError or another OSError.
    """
    policy = _allow_private_by_settings if allow_private is None else lambda: allow_private
    gate = Gate(policy, resolver)
    with Watch(timeout_s) as watch:
        gate.watch = watch
        return gate.open(host, port, timeout_s)


def checked_address(host: str, port: int, *, allow_private: bool | None = None) -> str:
    """One address of ``host`` that may be talked to, for datagrams. Raises as `open_connection`."""
    allowed = _allow_private_by_settings() if allow_private is None else allow_private
    return checked_addresses(host, port, allow_private=allowed, resolver=system_resolver)[0]


def _too_many(limit: int, history: list[Hop]) -> ActionError:
    return ActionError(
        "TOO_MANY_REDIRECTS",
        f"more than {limit} redirects, the last to {history[-1].location}",
        retryable=False,
        details={"history": [hop.url for hop in history]},
    )


def _drain(response: requests.Response) -> tuple[bytes, bool]:
    """Pass over a declined body: read it when it is short, so that the connection can be used again."""
    length = response.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and len(length) < 6:
        _read(response, _PASSED_OVER_MAX)
    return b"", False


def _read(response: requests.Response, max_bytes: int) -> tuple[bytes, bool]:
    """At most ``max_bytes`` of the decoded body, and whether there was more."""
    parts: list[bytes] = []
    size = 0
    for chunk in response.iter_content(_CHUNK):
        parts.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            return b"".join(parts)[:max_bytes], True
    return b"".join(parts), False


def _raise_if_fired(watch: Watch, timeout_s: float, error: Exception | None) -> None:
    """A socket that the watch shut down looks like a reset or an early end; say what it was."""
    if watch.fired == "interrupt":
        raise OutboundInterrupted from error
    if watch.fired == "deadline":
        raise requests.exceptions.ReadTimeout(f"no complete answer within {timeout_s:g} s") from error


def _ms_since(moment: float) -> float:
    return round((time.monotonic() - moment) * 1000, 1)


__all__ = [
    "Client",
    "Hop",
    "OutboundInterrupted",
    "OutboundResponse",
    "checked_address",
    "open_connection",
    "refuse_unless_allowed",
    "request",
    "shown",
]
