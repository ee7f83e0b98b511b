"""A small client: Django's test client with JSON, a key and plain answers."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

SHAPE = {"code", "message", "details", "request_id"}


class Api:
    """Requests with one key (none when it is empty). A body may be any value, or bytes as they are."""

    def __init__(self, key: str = "", client: Client | None = None) -> None:
        self.key = key
        self.client = client or Client(raise_request_exception=False)

    def get(self, path: str, **parameters: Any) -> Any:
        headers = parameters.pop("headers", {})
        return self.client.get(f"/api/{path}", parameters, headers=self._headers(headers))

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self._send("post", path, body, headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> Any:
        return self._send("patch", path, body, headers)

    def delete(self, path: str) -> Any:
        return self.client.delete(f"/api/{path}", headers=self._headers({}))

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return self._send(method.lower(), path, body, {})

    def _send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        raw = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        kind = headers.pop("content_type", "application/json")
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(method.upper(), f"/api/{path}", raw, content_type=kind, headers=self._headers(named))

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        return {**({"Authorization": f"Api-Key {self.key}"} if self.key else {}), **more}


def refused(response: Any, status: int | range, code: str = "") -> dict[str, Any]:
    """Assert that the answer is an error in the one shape; gives its body."""
    wanted = [status] if isinstance(status, int) else status
    assert response.status_code in wanted, (response.status_code, response.content[:500])
    assert response.headers["Content-Type"] == "application/json"
    body: dict[str, Any] = response.json()
    assert set(body) == SHAPE
    assert isinstance(body["message"], str) and body["message"]
    assert body["request_id"] == response.headers["X-Request-Id"]
    assert "Traceback" not in response.content.decode()
    if code:
        assert body["code"] == code
    return body
