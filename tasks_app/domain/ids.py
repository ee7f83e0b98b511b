"""Identifiers: a UUIDv7 in the database, a TypeID (``task_01h…``) everywhere a person or a program sees it."""

from __future__ import annotations

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
    "dead_letter": "dlq",
    "worker": "wrk",
    "audit": "aud",
    "user": "user",
}


def new_id() -> UUID:
    """A fresh UUIDv7: sorts by the time it was made, so that ids are also a keyset order."""
    return uuid7()


def to_text(noun: str, value: UUID) -> str:
    """The TypeID of a row: ``to_text("task", uuid) -> "task_01h…"``."""
    # The library is typed for its own UUID class but takes the standard one.
    return str(TypeID.from_uuid(value, prefix=PREFIXES[noun]))  # type: ignore[arg-type]


def from_text(noun: str, text: str) -> UUID:
    """The UUID behind a TypeID. Raises `NotFound` for anything that cannot be an id of ``noun``."""
    try:
        parsed = TypeID.from_string(text)
    except (TypeIDException, ValueError, AttributeError) as error:
        raise NotFound(noun, text) from error
    if parsed.prefix != PREFIXES[noun]:
        raise NotFound(noun, text)
    return UUID(str(parsed.uuid))
