"""How values look on the desk: statuses, times, durations, ids, JSON. Everything that comes in is escaped.

A template library (``{% load desk %}``) that the columns of lists use as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from tasks_app.domain import clock, ids, jsonsafe
from tasks_app.domain.masking import MASK
from tasks_app.queries import actors
from tasks_app.queries.dashboard import OPEN_MAX
from tasks_app.services import secrets

register = template.Library()

DASH = "–"
_PREFIXES = frozenset(ids.PREFIXES.values())
_ID_LENGTH = 26
PRETTY_MAX = 200_000

TONES = {
    "running": "info",
    "completed": "good",
    "replayed": "good",
    "retried": "good",
    "approved": "good",
    "rejected": "bad",
    "failed": "bad",
    "lost": "bad",
    "open": "bad",
    "cancelled": "mute",
    "discarded": "mute",
    "draft": "mute",
    "stopped": "mute",
    "queued": "plain",
    "waiting": "warn",
    "pending": "warn",
    "retrying": "warn",
    "paused": "warn",
    "alive": "good",
    "dead": "bad",
    "active": "good",
    "revoked": "mute",
    "expired": "warn",
}


def badge(status: str) -> SafeString:
    """A status as a coloured label; the word is always there, so colour is never the only sign."""
    tone = TONES.get(status, "plain")
    return format_html('<span class="d-badge d-badge--{}">{}</span>', tone, str(status).capitalize())


def seconds_text(seconds: float | None) -> str:
    """A duration for people: ``340 ms``, ``2.4 s``, ``3 min 05 s``, ``2 h 10 min``, ``4 d 3 h``."""
    if seconds is None:
        return DASH
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def _rough(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def ago(moment: datetime | None) -> SafeString | str:
    """How long ago (or in how long), with the exact instant as a tool tip."""
    if moment is None:
        return DASH
    past = (clock.now() - moment).total_seconds()
    text = "now" if abs(past) < 1 else f"{_rough(past)} ago" if past > 0 else f"in {_rough(-past)}"
    exact = moment.strftime("%Y-%m-%d %H:%M:%S UTC")
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, text)


def exact(moment: datetime | None) -> SafeString | str:
    """An instant to the second, with how long ago as a tool tip."""
    if moment is None:
        return DASH
    text = moment.strftime("%Y-%m-%d %H:%M:%S")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', moment.isoformat(), moment.strftime("%f µs, UTC"), text
    )


def short_id(noun: str, value: UUID) -> SafeString:
    """The prefix and the telling end of a TypeID; the whole one is the tool tip."""
    text = ids.to_text(noun, value)
    prefix, _, rest = text.partition("_")
    return format_html('<span class="d-id" title="{}">{}_…{}</span>', text, prefix, rest[-8:])


def link(noun: str, value: UUID | None, text: str = "") -> SafeString | str:
    """A link to the page of a row of ``noun``."""
    if value is None:
        return DASH
    shown: Any = text or short_id(noun, value)
    return format_html('<a class="d-link" href="{}">{}</a>', page_address(noun, value), shown)


_MODELS = {"dead_letter": "deadletterjob", "audit": "auditentry", "api_key": "apikey"}


def page_address(noun: str, value: Any) -> str:
    """The address of the page of a row."""
    return reverse(f"admin:tasks_app_{_MODELS.get(noun, noun)}_change", args=[value])


def list_address(noun: str, query: str = "") -> str:
    """The address of a list, with a query string."""
    address = reverse(f"admin:tasks_app_{_MODELS.get(noun, noun)}_changelist")
    return f"{address}?{query}" if query else address


def percentage(progress: Any) -> float | None:
    """0..100 from the stored progress, or None when it does not say."""
    value = progress.get("percentage") if isinstance(progress, Mapping) else None
    return min(100.0, max(0.0, float(value))) if isinstance(value, int | float) else None


def progress_bar(progress: Any, *, small: bool = False) -> SafeString | str:
    """A bar with its numbers; a moving one when the total is unknown."""
    if not isinstance(progress, Mapping):
        return ""
    value = percentage(progress)
    current, total = progress.get("current"), progress.get("total")
    numbers = f"{current} of {total}" if total is not None else f"{current}" if current is not None else ""
    percent = f"{value:.0f} %" if value is not None else ""
    attribute = format_html('value="{}"', value) if value is not None else ""
    return format_html(
        '<span class="d-progress{}"><progress max="100" {} aria-label="Progress"></progress>'
        '<span class="d-progress__text" title="{}">{}</span></span>',
        " d-progress--small" if small else "",
        attribute,
        numbers,
        percent or numbers,
    )


def masked(value: Any) -> Any:
    """``value`` with sealed secrets replaced by dots."""
    if isinstance(value, Mapping):
        return MASK if set(value) == {secrets.MARK} else {key: masked(item) for key, item in value.items()}
    return [masked(item) for item in value] if isinstance(value, list) else value


def pretty(value: Any) -> tuple[str, bool]:
    """JSON for reading, secrets masked, and whether it was cut at `PRETTY_MAX` characters."""
    text = json.dumps(masked(value), indent=2, ensure_ascii=False, default=str)
    text = jsonsafe.clean_text(text)
    return text[:PRETTY_MAX], len(text) > PRETTY_MAX


def error_text(error: Any) -> str:
    """``CODE: message`` of a stored error, short."""
    if not isinstance(error, Mapping):
        return "" if error is None else jsonsafe.clean_text(str(error))[:300]
    return f"{error.get('code', 'ERROR')}: {error.get('message', '')}"[:300]


def stacked(first: Any, second: Any) -> SafeString:
    """Two lines in one cell, the second quieter."""
    return format_html(
        '<span class="d-two"><span>{}</span><small>{}</small></span>', first, second or mark_safe("&nbsp;")
    )


register.filter("badge", badge)
register.filter("ago", ago)
register.filter("exact", exact)
register.filter("seconds", seconds_text)
register.filter("progress_bar", progress_bar)
register.filter("error_text", error_text)


register.filter("owner_name", actors.name_of_owner)


@register.filter
def milliseconds(value: float | None) -> str:
    """Milliseconds as a duration for people."""
    return seconds_text(None if value is None else value / 1000)


@register.filter
def link_to(value: Any, noun: str) -> Any:
    """A link with the short id, or a dash."""
    return link(noun, value)


@register.filter
def typeid(value: Any, noun: str) -> str:
    """The whole TypeID of a UUID."""
    return ids.to_text(noun, value) if value else ""


@register.inclusion_tag("admin/desk/json.html")
def json_box(value: Any, title: str, empty: str = "Nothing here.") -> dict[str, Any]:
    """A value as readable JSON with a button that copies it."""
    text, cut = pretty(value)
    return {"title": title, "text": text, "cut": cut, "empty": empty, "there": value is not None}


@register.inclusion_tag("admin/desk/error.html")
def error_box(error: Any) -> dict[str, Any]:
    """A stored error: code, message, details and the traceback as it was printed."""
    if not isinstance(error, dict):
        return {"error": None, "raw": error_text(error)}
    known = masked(error)
    details = known.get("details")
    return {
        "error": known,
        "traceback": known.get("traceback") or "",
        "details": pretty(details)[0] if details not in (None, [], {}) else "",
    }


@register.filter
def grouped(value: int | None) -> str:
    """A whole number with thousands apart."""
    return DASH if value is None else f"{value:,}"


@register.filter
def money(value: Decimal) -> str:
    """An exact amount, thousands apart and with at least two decimals."""
    whole, _, cents = f"{value:,f}".partition(".")
    return f"{whole}.{cents:0<2}"


@register.filter
def bounded(value: int) -> str:
    """A number that was counted no further than a bound."""
    return f"{value:,}" if value <= OPEN_MAX else f"{OPEN_MAX:,}+"


@register.filter
def one_line(value: Any) -> str:
    """JSON on one line, secrets masked, for a table cell."""
    text = json.dumps(masked(value), ensure_ascii=False, default=str)
    return jsonsafe.clean_text(text[:2_000])


@register.filter
def actor_name(row: Any) -> str:
    """Who did it, for people."""
    return actors.name_of(row.actor_type, row.actor_id)


_CRUMBS = {"dead letter jobs": "Dead letters", "api keys": "API keys", "organizations": "Organisations"}


@register.filter
def crumb(title: Any) -> str:
    """A step of the path at the top: names begin with a capital, ids stay as they are and are cut to their end."""
    text = str(title)
    prefix, _, rest = text.partition("_")
    if prefix in _PREFIXES and len(rest) == _ID_LENGTH:
        return f"{prefix}_…{rest[-8:]}"
    return _CRUMBS.get(text, text[:1].upper() + text[1:])
