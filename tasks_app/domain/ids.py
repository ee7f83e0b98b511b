"""Identifiers: a UUIDv7 in the database, a TypeID (``task_01h…``) everywhere a person or a program sees it."""

from __future__ import annotations

from base64 import b32hexencode
from uuid import UUID

from typeid import TypeID
from typeid.core.errors import TypeIDException
from uuid_utils.compat import uuid7

from tasks_app.domain.errors import NotFound

PREFIXES = {
    "organization": "org",
    "membership": "mem",
    "api_key": "key",
    "project": "proj",
    "resource": "res",
    "event": "evt",
    "task": "task",
    "job": "job",
    "execution": "exec",
    "cost": "cost",
    "dead_letter": "dlq",
    "worker": "wrk",
    "approval": "appr",
    "audit": "aud",
    "user": "user",
}

_DIGITS = bytes.maketrans(b"0123456789ABCDEFGHIJKLMNOPQRSTUV", b"0123456789abcdefghjkmnpqrstvwxyz")


def new_id() -> UUID:
    """A fresh UUIDv7: sorts by the time it was made, so that ids are also a keyset order."""
    return uuid7()


def to_text(noun: str, value: UUID) -> str:
    """The TypeID of a row: ``to_text("task", uuid) -> "task_01h…"``."""
    # As the library writes it, but ten times as fast: this is done for every task of a bulk. 130 bits in 26 digits, so
    # two zero bits in front; six more behind make whole bytes.
    digits = b32hexencode((value.int << 6).to_bytes(17))[:26].translate(_DIGITS)
    return f"{PREFIXES[noun]}_{digits.decode()}"


def from_text(noun: str, text: str) -> UUID:
    """The UUID behind a TypeID. Raises `NotFound` for anything that cannot be an id of ``noun``."""
    try:
        parsed = TypeID.from_string(text)
    except (TypeIDException, ValueError, AttributeError) as error:
        raise NotFound(noun, text) from error
    if parsed.prefix != PREFIXES[noun]:
        raise NotFound(noun, text)
    return UUID(str(parsed.uuid))
