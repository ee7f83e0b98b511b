"""Input fields that several actions share, with the checks that make bad input a clear message."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from devos.plugins.secret_values import seal_by_name

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SET_BY_THE_CLIENT = frozenset({"content-length", "transfer-encoding", "connection", "host"})


def _web_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"is not a URL ({error})") from error
    if parts.scheme.lower() not in {"http", "https"} or not host:
        raise ValueError("must be a full http:// or https:// URL, like https://example.org/path")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a user name or password; send them in an Authorization header")
    if any(char.isspace() or ord(char) < 32 for char in value):
        raise ValueError("must not contain blanks or control characters; write them as %20 and the like")
    return value


def _headers(values: dict[str, SecretStr | str]) -> dict[str, SecretStr | str]:
    for name, value in values.items():
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name[:60]!r} is not a header name")
        if name.lower() in _SET_BY_THE_CLIENT:
            raise ValueError(f"{name} is set by the client and cannot be given")
        if not text.isprintable() or not _fits_latin1(text):
            raise ValueError(f"the value of {name} may hold printable Latin-1 characters only")
    return seal_by_name(values)


def _fits_latin1(text: str) -> bool:
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True


WebUrl = Annotated[str, Field(max_length=4_000), AfterValidator(_web_url)]
HeaderValue = Annotated[str, Field(max_length=8_000)]
Headers = Annotated[dict[str, HeaderValue | SecretStr], Field(max_length=100), AfterValidator(_headers)]
Parameters = Annotated[
    dict[str, Annotated[str, Field(max_length=4_000)] | SecretStr], Field(max_length=200), AfterValidator(seal_by_name)
]
Status = Annotated[int, Field(ge=100, le=599)]
Port = Annotated[int, Field(ge=1, le=65_535)]
