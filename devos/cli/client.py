"""The one way the command talks to the platform: its REST API through a `requests` session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import requests

from devos.cli.errors import ApiError, CliError, NotReachable

PAGE_SIZE = 100
CONNECT_TIMEOUT_S = 5
# Longer than the longest sync action may take, so that the server's own answer comes first.
READ_TIMEOUT_S = 120


class Client:
    """Calls the API at ``base_url`` (without ``/api``). Every method raises `CliError` with a sentence for a person."""

    def __init__(self, session: requests.Session, base_url: str, where: str) -> None:
        self.session = session
        self.base_url = base_url.rstrip("/")
        self.where = where

    def get(self, *path: str, **params: Any) -> Any:
        """The JSON at ``/api/<path>``; parameters that are None or empty are left out."""
        return self._call("GET", path, params={k: v for k, v in params.items() if v not in (None, "", [], ())})

    def one(self, *path: str) -> dict[str, Any]:
        """The single thing at ``/api/<path>``."""
        found: dict[str, Any] = self.get(*path)
        return found

    def post(self, *path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """POST ``body`` as JSON; the JSON of the answer, or None when it has no body."""
        try:
            data = json.dumps({} if body is None else body, allow_nan=False).encode()
        except (ValueError, RecursionError) as error:
            raise CliError(f"This input cannot be sent as JSON: {error}") from error
        return self._call("POST", path, data=data, headers={"Content-Type": "application/json", **(headers or {})})

    def delete(self, *path: str) -> Any:
        """DELETE; the JSON of the answer."""
        return self._call("DELETE", path)

    def page(self, *path: str, **params: Any) -> tuple[list[dict[str, Any]], str]:
        """One page of a list, and the cursor of the next one (empty when this is the last)."""
        answer = self.get(*path, **params)
        return answer["results"], answer.get("next") or ""

    def items(self, *path: str, limit: int | None = None, **params: Any) -> Iterator[dict[str, Any]]:
        """The items of a list over all its pages, at most ``limit`` of them."""
        left = limit
        cursor = ""
        while left is None or left > 0:
            size = PAGE_SIZE if left is None else min(left, PAGE_SIZE)
            found, cursor = self.page(*path, **params, cursor=cursor, limit=size)
            yield from found if left is None else found[:left]
            left = None if left is None else left - len(found)
            if not cursor:
                return

    def _call(self, method: str, path: tuple[str, ...], **options: Any) -> Any:
        try:
            url = "/".join([self.base_url, "api", *(quote(part, safe=".") for part in path)])
            response = self.session.request(
                method, url, timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S), allow_redirects=False, **options
            )
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema) as error:
            raise CliError(f"{self.base_url} is not an address of a server: {error}") from error
        except requests.exceptions.InvalidHeader as error:
            raise CliError(f"A value cannot be sent in a header: {error}") from error
        except UnicodeEncodeError as error:
            raise CliError(f"{error.object!r} cannot be sent: it is not valid text.") from error
        except requests.exceptions.RequestException as error:
            raise NotReachable(f"{self.where} does not answer: {_reason(error)}. {_what_to_do(self.where)}") from error
        return self._answer(response)

    def _answer(self, response: requests.Response) -> Any:
        if 300 <= response.status_code < 400:
            target = response.headers.get("Location", "another address")
            raise NotReachable(f"{self.where} sends its callers on to {target}. Use that server's address.")
        if response.status_code == 204:
            return None
        try:
            body = response.json()
        except ValueError as error:
            raise NotReachable(
                f"{self.where} answered {response.status_code} without JSON: no DevOS API at this address. "
                f"{_what_to_do(self.where)}"
            ) from error
        if response.status_code >= 400:
            raise ApiError(response.status_code, body if isinstance(body, dict) else {"message": str(body)})
        return body


def _what_to_do(where: str) -> str:
    if where.startswith("http"):
        return "Check the address, and that the platform runs there."
    return "`devos doctor` says what is wrong."


def _reason(error: requests.exceptions.RequestException) -> str:
    if isinstance(error, requests.exceptions.Timeout):
        return "it took too long"
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    return str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__


def remote(server: str, key: str) -> Client:
    """A client of the platform at ``server`` (http or https URL) with an API key."""
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CliError(f"--server {server!r} is not an address: write it like https://devos.example.org.")
    if not key:
        raise CliError("A server needs a key: add --key KEY, or set DEVOS_KEY.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise CliError("The key contains characters that no key has. Copy it again (--key or DEVOS_KEY).")
    session = requests.Session()
    session.headers.update({"Authorization": f"Api-Key {key}", "Accept": "application/json"})
    base = server.rstrip("/").removesuffix("/api")
    return Client(session, base, base)
