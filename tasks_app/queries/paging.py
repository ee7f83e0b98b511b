"""Keyset pages: stable while rows come and go, and as quick on page 10,000 as on the first."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar
from uuid import UUID

from django.db.models import Q, QuerySet
from pydantic import BaseModel, ConfigDict, Field

from tasks_app.domain.errors import InvalidInput
from tasks_app.domain.principal import Principal

LIMIT_DEFAULT = 50
LIMIT_MAX = 200
# A condition that no index serves is tried on at most this many rows a page, so that no request reads a whole table.
SCAN_MAX = 100_000

R = TypeVar("R")
Key = UUID | int | str


@dataclass(frozen=True)
class Page(Generic[R]):
    """``next`` is the cursor of the following page, None on the last one."""

    rows: list[R]
    next: str | None


@dataclass(frozen=True)
class Count:
    """A count that stops at a limit: ``exact`` is False when there may be more."""

    value: int
    exact: bool


class ListQuery(BaseModel):
    """What every list takes. A filter object adds its fields, and says which rows they mean.

    `narrow` is the part an index serves, scoped to the caller's organisation; `sieve` the part that has to be tried
    row by row.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    noun: ClassVar[str]

    limit: int = Field(LIMIT_DEFAULT, ge=1, le=LIMIT_MAX, description="Rows on a page.")
    cursor: str | None = Field(None, max_length=400, description="`next` of the page before.")

    def narrow(self, principal: Principal) -> QuerySet[Any]:
        raise NotImplementedError

    def sieve(self) -> Q:
        return Q()

    def queryset(self, principal: Principal) -> QuerySet[Any]:
        """Every row that is meant, for bulk verbs."""
        return self.narrow(principal).filter(self.sieve())

    def count(self, principal: Principal, at_most: int = 10_000) -> Count:
        """How many rows are meant, counting no further than ``at_most``."""
        found = self.queryset(principal).order_by()[: at_most + 1].count()
        return Count(min(found, at_most), exact=found <= at_most)


class NewestFirst(ListQuery):
    """A list whose order is that of the ids, which is that of creation."""

    ordering: Literal["-created_at", "created_at"] = Field("-created_at", description="Newest or oldest first.")

    def page(self, queryset: QuerySet[Any]) -> Page[Any]:
        """A page of ``queryset``, which must be `narrow` with whatever columns the caller wants."""
        return keyset(queryset, self, descending=self.ordering == "-created_at", sieve=self.sieve())


def keyset(
    queryset: QuerySet[Any], query: ListQuery, *, field: str = "id", descending: bool = True, sieve: Q | None = None
) -> Page[Any]:
    """The rows after ``query.cursor`` in the order of ``field``, which must be unique.

    With a ``sieve`` a page may hold fewer rows than asked, even none, while ``next`` is set: go on from there.
    """
    tag = f"{query.noun}.{field}.{'down' if descending else 'up'}"
    beyond = "lt" if descending else "gt"
    ordered = queryset.order_by(f"-{field}" if descending else field)
    if query.cursor is not None:
        ordered = ordered.filter(**{f"{field}__{beyond}": read_cursor(tag, query.cursor)})
    last_tried = None
    if sieve:
        last_tried = ordered.values_list(field, flat=True)[SCAN_MAX - 1 : SCAN_MAX].first()
        ordered = ordered.filter(sieve)
        if last_tried is not None:
            ordered = ordered.filter(**{f"{field}__{'gte' if descending else 'lte'}": last_tried})
    rows = list(ordered[: query.limit + 1])
    if len(rows) > query.limit:
        rows.pop()
        return Page(rows, write_cursor(tag, getattr(rows[-1], field)))
    return Page(rows, write_cursor(tag, last_tried) if last_tried is not None else None)


def write_cursor(tag: str, key: Key) -> str:
    """An opaque text that stands for "after ``key``" in the list ``tag``."""
    kind = {UUID: "u", int: "i"}.get(type(key), "s")
    return base64.urlsafe_b64encode(f"{tag}|{kind}|{key}".encode()).decode().rstrip("=")


def read_cursor(tag: str, cursor: str) -> Key:
    """The key in a cursor. Raises `InvalidInput` for anything the list ``tag`` did not give out."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found, kind, key = base64.b64decode(padded, altchars=b"-_", validate=True).decode().split("|", 2)
        if found == tag:
            return UUID(key) if kind == "u" else _whole(key) if kind == "i" else key
    except (binascii.Error, ValueError):
        pass
    problem = "is not a cursor of this list in this order; leave it out to start again"
    raise InvalidInput(f"cursor: {problem}", [{"field": "cursor", "problem": problem}])


def _whole(text: str) -> int:
    number = int(text) if len(text) <= 20 else -1
    if not 0 <= number < 2**63:
        raise ValueError(text)
    return number
