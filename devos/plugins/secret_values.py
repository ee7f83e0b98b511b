"""Values of headers and parameters that are secrets by their name: sealed in rows, masked in what is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, quote_plus

from pydantic import SecretStr

MASK = "••••"
_SECRET_NAME = re.compile(
    r"auth|cookie|token|secret|passw|pwd|credential|signature|session|api[-_]?key|access[-_]?key|private[-_]?key",
    re.IGNORECASE,
)
_SHORTEST_MASKED = 4


def is_secret_name(name: str) -> bool:
    """Whether a header or parameter of this name most likely carries a secret."""
    return bool(_SECRET_NAME.search(name))


def seal_by_name(values: Mapping[str, SecretStr | str]) -> dict[str, SecretStr | str]:
    """``values`` with those that are secret by name as SecretStr, which the platform encrypts and masks."""
    return {
        name: SecretStr(value) if isinstance(value, str) and is_secret_name(name) else value
        for name, value in values.items()
    }


def opened(values: Mapping[str, SecretStr | str]) -> dict[str, str]:
    """``values`` in plain text, to be sent."""
    return {name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in values.items()}


def secret_texts(values: Iterable[SecretStr | str]) -> list[str]:
    """What must not be shown: each secret, the part after a scheme like ``Bearer``, and how they look in a URL.

    Short ones are left out: they would mask half of every text.
    """
    found: set[str] = set()
    for value in values:
        if isinstance(value, SecretStr):
            text = value.get_secret_value()
            for part in (text, text.rpartition(" ")[2]):
                found |= {part, quote(part, safe=""), quote_plus(part)}
    return sorted((text for text in found if len(text) >= _SHORTEST_MASKED), key=len, reverse=True)


def mask(text: str, secrets: Iterable[str]) -> str:
    """``text`` with every secret in it replaced by dots."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def masked_headers(headers: Mapping[str, str], secrets: Iterable[str]) -> dict[str, str]:
    """Response headers fit to be stored: names in lower case, secret ones masked, long values cut."""
    kept = list(secrets)
    return {
        name.lower(): MASK if is_secret_name(name) and name.lower() != "www-authenticate" else mask(value, kept)[:2_000]
        for name, value in headers.items()
    }
