"""What a key looks like: ``devos_<prefix>_<secret>``. The prefix finds the row, the secret proves it."""

from __future__ import annotations

import hashlib
import re
import secrets

_SHAPE = re.compile(r"devos_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def make() -> tuple[str, str]:
    """A fresh key and its prefix. 256 random bits, so a plain fast hash of it cannot be searched."""
    prefix = "".join(secrets.choice(_ALPHABET) for _ in range(12))
    return f"devos_{prefix}_{secrets.token_urlsafe(32)}", prefix


def prefix_of(key: str) -> str | None:
    """The prefix, or None for a text that cannot be a key."""
    found = _SHAPE.fullmatch(key)
    return found.group(1) if found else None


def digest(key: str) -> str:
    """What is stored: SHA-256 in hex."""
    return hashlib.sha256(key.encode()).hexdigest()
