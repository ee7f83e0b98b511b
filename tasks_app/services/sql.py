"""Helpers for the hot path: one statement over a list of rows, sent as one JSON document."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import OperationalError, connections
from psycopg import RawCursor

# Bookkeeping runs on a connection of its own (see settings.DATABASES).
RUNTIME = "runtime"
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_RETRY_STATES = {"40P01", "40001"}

T = TypeVar("T")


def statement(text: str) -> str:
    """A statement without comments and line breaks: psycopg keeps its parsed form only below 4,096 characters."""
    lines = (line.partition("--")[0] for line in text.splitlines())
    return " ".join(" ".join(lines).split())


def document(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as the JSON text that ``jsonb_to_recordset`` reads; UUIDs become text, what is None is left out."""
    present = ({k: v for k, v in row.items() if v is not None} for row in rows)
    return json.dumps(list(present), ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)


def run(query: str, parameters: dict[str, Any], using: str) -> list[tuple[Any, ...]]:
    """Execute one statement and fetch its rows; deadlocks and serialisation failures are tried again."""

    def once() -> list[tuple[Any, ...]]:
        with connections[using].cursor() as cursor:
            cursor.execute(query, parameters)
            return cursor.fetchall() if cursor.description else []

    return once() if connections[using].in_atomic_block else again_on_conflict(once)


@dataclass(frozen=True)
class Prepared:
    """A statement of the hot path in PostgreSQL's own form: ``$1`` stands for the first of ``names``."""

    text: str
    names: tuple[str, ...]


def prepared(text: str) -> Prepared:
    """A statement with ``%(name)s`` placeholders, translated once instead of at each call."""
    names = tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))
    return Prepared(_PLACEHOLDER.sub(lambda found: f"${names.index(found[1]) + 1}", statement(text)), names)


def run_prepared(query: Prepared, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Execute a statement on the runtime's connection, outside any transaction, and fetch its rows.

    Not through Django's cursor, whose wrapping costs as much as psycopg's own work.
    """
    wrapper = connections[RUNTIME]
    values = [parameters[name] for name in query.names]

    def once() -> list[tuple[Any, ...]]:
        wrapper.ensure_connection()
        with wrapper.wrap_database_errors, RawCursor(wrapper.connection) as cursor:
            return cursor.execute(query.text, values, prepare=True).fetchall()

    return again_on_conflict(once)


def again_on_conflict(work: Callable[[], T], tries: int = 5) -> T:
    """Run a transaction again when PostgreSQL chose it as the victim of a deadlock (40P01) or conflict (40001)."""
    for left in range(tries, 0, -1):
        try:
            return work()
        except OperationalError as error:
            if left == 1 or getattr(error.__cause__, "sqlstate", None) not in _RETRY_STATES:
                raise
    raise ValueError("tries must be positive")


def load(value: Any) -> Any:
    """A jsonb column of a raw statement: Django's connections hand out its text."""
    return json.loads(value) if isinstance(value, str) else value
