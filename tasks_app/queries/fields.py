"""Types and conditions that several filters share."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from django.db.models import BooleanField, F, Func, JSONField, Q, QuerySet
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)
# The clock of a web process and the database's may differ; an id is never trusted to be nearer to its row than this.
_ID_CLOCK_SLACK = timedelta(hours=1)
# A value stored in more bytes than this, or longer than this as text, is left out of lists.
_LIGHT_STORED_BYTES = 8_192
_LIGHT_TEXT_BYTES = 16_384


def _text_only(value: object) -> object:
    if isinstance(value, str) and len(value) <= 64 and not value.strip().lstrip("+-").replace(".", "").isdigit():
        return value
    raise ValueError("give a time as text with an offset, like 2026-12-01T08:30:00Z")


def _in_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("give the offset from UTC, like 2026-12-01T08:30:00Z or 2026-12-01T08:30:00+02:00")
    try:
        moved = value.astimezone(UTC)
    except (OverflowError, ValueError):
        raise ValueError("is outside 1970 to 2200") from None
    if not _EARLIEST <= moved < _LATEST:
        raise ValueError("is outside 1970 to 2200")
    return moved


Instant = Annotated[
    datetime,
    BeforeValidator(_text_only),
    AfterValidator(_in_utc),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A point in time: ISO 8601 text with an offset, kept in UTC."""

ShortText = Annotated[str, Field(min_length=1, max_length=200)]


def status_is_one_of(column: str, statuses: Sequence[StrEnum]) -> Func:
    """``column in (...)`` with the statuses written into the SQL.

    As parameters they would hide from the planner that a partial index fits: after five runs PostgreSQL may keep a
    generic plan that walks the whole table for a rare status.
    """
    listed = ", ".join(f"'{type(status)(status).value}'" for status in statuses)
    return Func(F(column), template=f"%(expressions)s IN ({listed})", output_field=BooleanField())


def made_between(after: datetime | None, before: datetime | None) -> Q:
    """Rows with ``after <= created_at < before``, found through the time inside their UUIDv7 keys."""
    condition = Q()
    if after is not None:
        condition &= Q(created_at__gte=after, id__gte=first_id_at(after - _ID_CLOCK_SLACK))
    if before is not None:
        condition &= Q(created_at__lt=before, id__lt=first_id_at(before + _ID_CLOCK_SLACK))
    return condition


def first_id_at(instant: datetime) -> UUID:
    """The smallest UUIDv7 made at ``instant``."""
    milliseconds = max(0, int(instant.timestamp() * 1000))
    return UUID(int=milliseconds << 80)


def without_heavy(queryset: QuerySet[Any], *fields: str, **expressions: Any) -> QuerySet[Any]:
    """Do not read large JSON values: a list of 200 rows must not weigh a gigabyte.

    Each row gets ``<field>_light`` (the value, None when it is heavy) and ``<field>_omitted`` (whether it is heavy).
    ``expressions`` name values that are not a column of the row's own table.
    """
    heavy = (
        f"(pg_column_size(%(expressions)s) > {_LIGHT_STORED_BYTES} "
        f"OR octet_length(%(expressions)s::text) > {_LIGHT_TEXT_BYTES})"
    )
    extra: dict[str, Func] = {}
    for name, value in {**{name: F(name) for name in fields}, **expressions}.items():
        extra[f"{name}_light"] = Func(
            value, template=f"CASE WHEN {heavy} THEN NULL ELSE %(expressions)s END", output_field=JSONField()
        )
        extra[f"{name}_omitted"] = Func(value, template=f"coalesce({heavy}, false)", output_field=BooleanField())
    return queryset.defer(*fields).annotate(**extra)
