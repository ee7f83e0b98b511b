"""Connections that go only to checked addresses and end at their deadline.

The check sits where the socket is opened, the one place every spelling, redirect and retry must pass. The name is
resolved there once and the checked address is connected to, so an answer that changes between check and use (DNS
rebinding) cannot matter; Host header, SNI and certificate checks still use the name.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from tasks_app.runtime.outbound_addresses import Resolver, checked_addresses

# How soon a cancel reaches a thread that waits for the network.
_INTERRUPT_POLL_S = 0.1
_ADDRESSES_TRIED = 6


class Watch:
    """One exchange's deadline. A thread shuts the socket down when it passes, or when ``interrupted()`` says so.

    Socket timeouts alone cannot do this: they start again with every byte a slow server drips.
    """

    def __init__(self, timeout_s: float, interrupted: Callable[[], bool] | None = None) -> None:
        self.deadline = time.monotonic() + timeout_s
        self.interrupted = interrupted
        self.fired: str | None = None  # "deadline" or "interrupt"
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def __enter__(self) -> Watch:
        threading.Thread(target=self._run, name="outbound-watch", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        with self._lock:
            self._forget_socket()

    def remaining_s(self) -> float:
        """Seconds until the deadline, at least a millisecond."""
        return max(self.deadline - time.monotonic(), 0.001)

    def attach(self, watched: Any) -> None:
        """Watch this socket from now on. Its descriptor is doubled, so wrapping it in TLS later changes nothing."""
        with self._lock:
            self._forget_socket()
            self._socket = socket.socket(fileno=os.dup(watched.fileno()))
            if self.fired:
                self._shut_down()

    def check(self) -> None:
        """Raise TimeoutError once the watch has fired or its deadline is over."""
        if self.fired or time.monotonic() >= self.deadline:
            raise TimeoutError("the deadline of the request passed")

    def wait(self, done: threading.Event) -> None:
        """Wait until ``done``; raise TimeoutError when the watch fires first."""
        while not done.wait(min(_INTERRUPT_POLL_S, self.remaining_s())):
            self.check()

    def _run(self) -> None:
        pause = _INTERRUPT_POLL_S if self.interrupted else math.inf
        while not self._ended.wait(min(pause, self.remaining_s())):
            if self.interrupted and self.interrupted():
                return self._fire("interrupt")
            if time.monotonic() >= self.deadline:
                return self._fire("deadline")
        return None

    def _fire(self, why: str) -> None:
        with self._lock:
            if not self._ended.is_set():
                self.fired = why
                self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other side was faster

    def _forget_socket(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Gate:
    """What the connections of one client share: the policy, the resolver, the current watch, and who was reached."""

    def __init__(self, allow_private: Callable[[], bool], resolver: Resolver) -> None:
        self.allow_private = allow_private
        self.resolver = resolver
        self.watch: Watch | None = None
        self.peer_address: str | None = None
        self.peer_certificate: bytes | None = None

    def open(self, host: str, port: int, timeout_s: float) -> socket.socket:
        """A TCP connection to a checked address of ``host``. Raises `ActionError` ADDRESS_REFUSED or OSError."""
        addresses = self._resolve(host, port)
        last_error: OSError | None = None
        for address in addresses[:_ADDRESSES_TRIED]:
            try:
                return self._connect(address, port, timeout_s)
            except OSError as error:
                last_error = error
        raise last_error or OSError(f"no address for {host}")

    def _resolve(self, host: str, port: int) -> list[str]:
        look_up = partial(checked_addresses, host, port, allow_private=self.allow_private(), resolver=self.resolver)
        if self.watch is None:
            return look_up()
        # The system's resolver knows no deadline, so it runs beside and may be left behind.
        outcome: list[list[str] | Exception] = []
        done = threading.Event()

        def run() -> None:
            try:
                outcome.append(look_up())
            except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
                outcome.append(error)
            done.set()

        threading.Thread(target=run, name="outbound-resolve", daemon=True).start()
        self.watch.wait(done)
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        return outcome[0]

    def _connect(self, address: str, port: int, timeout_s: float) -> socket.socket:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(min(timeout_s, self.watch.remaining_s()) if self.watch else timeout_s)
            if self.watch:
                self.watch.attach(connection)
            connection.connect((address, port))
            if self.watch:
                self.watch.check()
        except BaseException:
            connection.close()
            raise
        return connection

    def note_use(self, used: Any) -> None:
        """A request is about to be answered on the socket ``used``, new or kept alive."""
        if self.watch:
            self.watch.attach(used)
        self.peer_address = str(used.getpeername()[0])
        read_certificate = getattr(used, "getpeercert", None)
        self.peer_certificate = read_certificate(binary_form=True) if read_certificate else None


class _Guarded:
    """Mixed into a urllib3 connection: it opens its socket through the gate and tells the gate when it is used."""

    def __init__(self, *args: Any, gate: Gate, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.gate = gate

    def _new_conn(self: Any) -> socket.socket:
        timeout = self.timeout if isinstance(self.timeout, int | float) else 30.0
        try:
            return self.gate.open(self._dns_host, self.port, timeout)
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(self, f"no connection to {self.host} within {timeout:g} s") from error
        except OSError as error:
            raise NewConnectionError(self, f"no connection to {self.host}: {error}") from error

    def endheaders(self: Any, *args: Any, **kwargs: Any) -> None:
        if self.sock is None:
            self.connect()
        self.gate.note_use(self.sock)
        super().endheaders(*args, **kwargs)  # type: ignore[misc]


class _GuardedHTTPConnection(_Guarded, HTTPConnection):
    pass


class _GuardedHTTPSConnection(_Guarded, HTTPSConnection):
    pass


class _GuardedHTTPPool(HTTPConnectionPool):
    def __init__(self, *args: Any, gate: Gate, **kwargs: Any) -> None:
        self.ConnectionCls = partial(_GuardedHTTPConnection, gate=gate)  # type: ignore[assignment]
        super().__init__(*args, **kwargs)


class _GuardedHTTPSPool(HTTPSConnectionPool):
    def __init__(self, *args: Any, gate: Gate, **kwargs: Any) -> None:
        self.ConnectionCls = partial(_GuardedHTTPSConnection, gate=gate)  # type: ignore[assignment]
        super().__init__(*args, **kwargs)

    def _validate_conn(self, conn: Any) -> None:
        # Not the library's: that one warns at each unverified request, which here was the caller's explicit choice.
        if conn.is_closed:
            conn.connect()


class GuardedAdapter(HTTPAdapter):
    """The adapter of requests on guarded pools. It never retries and knows no proxy."""

    def __init__(self, gate: Gate) -> None:
        super().__init__(pool_connections=32, pool_maxsize=2, max_retries=0)
        self.poolmanager.pool_classes_by_scheme = {
            "http": partial(_GuardedHTTPPool, gate=gate),
            "https": partial(_GuardedHTTPSPool, gate=gate),
        }
