"""The REST API called inside this process: a `requests` transport around Django's WSGI handler.

The command on the machine of the platform needs no web process and no key this way, and still walks the same road as
every other client.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from http.client import responses
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import requests
from requests.adapters import BaseAdapter
from urllib3.response import HTTPResponse

PRINCIPAL = "devos.principal"


class _Body(io.RawIOBase):
    """A WSGI answer as a file, read as it is produced."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._source = chunks
        self._chunks: Iterator[bytes] = iter(chunks)
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            try:
                self._left = next(self._chunks)
            except StopIteration:
                return 0
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            super().close()
            # PEP 3333: this is what ends the request for Django (signals, connections).
            close = getattr(self._source, "close", None)
            if close:
                close()


class InProcessAdapter(BaseAdapter):
    """Answers requests with a WSGI application. ``environ`` is added to each request's environment.

    Values in the environment cannot come from a header of HTTP (those are named ``HTTP_...``), so the principal put
    there cannot be forged from outside.
    """

    def __init__(self, application: Any, environ: dict[str, Any]) -> None:
        super().__init__()
        self.application = application
        self.environ = environ

    def send(self, request: requests.PreparedRequest, *_args: Any, **_kwargs: Any) -> requests.Response:
        """Run the application for one request."""
        started: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            started.update(status=int(status.split(" ", 1)[0]), headers=headers)

        chunks = self.application(self._environ(request), start_response)
        raw = HTTPResponse(
            body=_Body(chunks),
            headers=started["headers"],
            status=started["status"],
            reason=responses.get(started["status"], ""),
            preload_content=False,
            decode_content=False,
            request_method=request.method,
        )
        response = requests.Response()
        response.status_code = started["status"]
        response.headers.update(dict(started["headers"]))
        response.encoding = requests.utils.get_encoding_from_headers(response.headers)
        response.raw = raw
        response.url = str(request.url)
        response.request = request
        response.reason = str(raw.reason)
        return response

    def close(self) -> None:
        """Nothing is held between requests."""

    def _environ(self, request: requests.PreparedRequest) -> dict[str, Any]:
        url = urlsplit(str(request.url))
        body = request.body or b""
        body = body.encode() if isinstance(body, str) else body
        environ = {
            "REQUEST_METHOD": request.method,
            "SCRIPT_NAME": "",
            # WSGI carries bytes as latin-1.
            "PATH_INFO": unquote_to_bytes(url.path).decode("latin-1"),
            "QUERY_STRING": url.query,
            "SERVER_NAME": url.hostname,
            "SERVER_PORT": str(url.port or 80),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": url.scheme,
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": False,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        for name, value in request.headers.items():
            plain = name.upper().replace("-", "_")
            if plain == "CONTENT_TYPE":
                environ[plain] = value
            elif plain != "CONTENT_LENGTH":
                environ[f"HTTP_{plain}"] = value
        return {**environ, "HTTP_HOST": url.netloc, **self.environ}
