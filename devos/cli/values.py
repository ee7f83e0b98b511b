"""Durations and moments as people type them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from devos.cli.errors import CliError

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"^(\d{1,9}(?:\.\d{1,6})?)\s*(s|m|h|d|)$")


def seconds(text: str, option: str) -> float:
    """``90``, ``90s``, ``5m``, ``2h`` or ``1d`` in seconds."""
    found = _DURATION.match(text.strip().lower())
    if not found:
        raise CliError(f"{option} {text!r} is not a time span. Write it like 90, 30s, 5m, 2h or 1d.")
    return float(found[1]) * _UNITS[found[2]]


def moment(text: str, option: str) -> str:
    """An ISO 8601 moment with its offset, or a time span from now, as ISO 8601 in UTC."""
    return _moment(text, option, 1)


def past(text: str, option: str) -> str:
    """Like `moment`, but a time span counts back from now."""
    return _moment(text, option, -1)


def _moment(text: str, option: str, direction: int) -> str:
    if _DURATION.match(text.strip().lower()):
        gone = timedelta(seconds=direction * seconds(text, option))
        try:
            return (datetime.now(UTC) + gone).isoformat()
        except OverflowError as error:
            raise CliError(f"{option} {text!r} is too long a time span.") from error
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise CliError(
            f"{option} {text!r} is neither a time span like 30m nor a moment like 2027-01-31T08:00+01:00."
        ) from error
    if found.tzinfo is None:
        raise CliError(f"{option} {text!r} has no time zone. Add one, like {text}Z or {text}+01:00.")
    return found.astimezone(UTC).isoformat()
