"""An ASGI wrapper that reads request bodies with a limit, before anybody buffers them.

Django's ASGI handler writes a whole body to disk before a view sees the request, and REST framework takes a body
without Content-Length (chunked) for none. Both are put right here: too much is answered with 413 at once, and what
fits gets its length.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tasks_app.api import errors
from tasks_app.api.parsers import too_large

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]


class _HungUp(Exception):
    """The caller went away in the middle of the body: what arrived must not be taken for a request."""


class BodyLimit:
    """``app`` with bodies of at most ``bytes_max`` bytes."""

    def __init__(self, app: App, bytes_max: int) -> None:
        self.app = app
        self.bytes_max = bytes_max

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        announced = headers.get(b"content-length", b"")
        if (announced.isdigit() and len(announced) > 15) or (announced.isdigit() and int(announced) > self.bytes_max):
            await self._refuse(send)
            return
        try:
            body = await self._body(receive)
        except _HungUp:
            return
        if body is None:
            await self._refuse(send)
            return
        if not announced and body:
            scope = {**scope, "headers": [*scope["headers"], (b"content-length", str(len(body)).encode())]}
        await self.app(scope, _replay(body, receive), send)

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole body; None when it is over the limit."""
        read = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _HungUp
            read += message.get("body", b"")
            if len(read) > self.bytes_max:
                return None
            if not message.get("more_body", False):
                return bytes(read)

    async def _refuse(self, send: Send) -> None:
        error = too_large(self.bytes_max)
        answer = json.dumps(errors.body(413, error.message, details=error.details)).encode()
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        headers.append((b"content-length", str(len(answer)).encode()))
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


def _replay(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that gives ``body`` once and then whatever else happens on the connection."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
