"""The transport that calls a WSGI application instead of a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import requests

from devos.cli.inprocess import PRINCIPAL, InProcessAdapter

Start = Callable[..., Any]


class Chunks:
    """A WSGI answer that notes how far it was read and whether it was closed."""

    def __init__(self, *chunks: bytes) -> None:
        self.left = list(chunks)
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        while self.left:
            yield self.left.pop(0)

    def close(self) -> None:
        self.closed = True


def _session(application: Any) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.mount("http://localhost", InProcessAdapter(application, {PRINCIPAL: "me"}))
    return session


def test_a_request_reaches_the_application_whole() -> None:
    seen: dict[str, Any] = {}

    def application(environ: dict[str, Any], start: Start) -> Any:
        seen.update(environ, body=environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        start("201 Created", [("Content-Type", "application/json; charset=utf-8"), ("X-Id", "7")])
        return Chunks(b'{"a":', b" 1}")

    answer = _session(application).post(
        "http://localhost/api/caf%C3%A9/x?q=a%20b", json={"k": "é"}, headers={"Idempotency-Key": "once"}
    )
    assert (answer.status_code, answer.json(), answer.headers["X-Id"]) == (201, {"a": 1}, "7")
    assert seen["REQUEST_METHOD"] == "POST"
    assert seen["PATH_INFO"].encode("latin-1").decode() == "/api/café/x"
    assert seen["QUERY_STRING"] == "q=a%20b"
    assert seen["CONTENT_TYPE"] == "application/json"
    assert seen["HTTP_IDEMPOTENCY_KEY"] == "once"
    assert seen["HTTP_HOST"] == "localhost"
    assert seen["body"] == b'{"k": "\\u00e9"}'


def test_a_header_cannot_pretend_to_be_the_principal() -> None:
    seen: dict[str, Any] = {}

    def application(environ: dict[str, Any], start: Start) -> Any:
        seen.update(environ)
        start("204 No Content", [])
        return Chunks()

    _session(application).get("http://localhost/", headers={"devos.principal": "admin", "Devos-Principal": "admin"})
    assert seen[PRINCIPAL] == "me"


def test_a_stream_is_read_as_it_comes_and_closed() -> None:
    chunks = Chunks(b"one\n", b"two\n", b"three\n")

    def application(environ: dict[str, Any], start: Start) -> Any:
        start("200 OK", [("Content-Type", "text/event-stream")])
        return chunks

    answer = _session(application).get("http://localhost/", stream=True)
    lines = answer.iter_lines(chunk_size=4)
    assert next(lines) == b"one"
    assert chunks.left
    answer.close()
    assert chunks.closed
