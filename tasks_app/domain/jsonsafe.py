"""One canonical JSON form. What is stored reads back the same on every attempt, and PostgreSQL always takes it.

Two ways in: `check` refuses bad payloads (from doors), `clean` repairs what finished work says (from actions), because
work that is done must never be lost over a character.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from tasks_app.domain.errors import InvalidInput, PayloadTooLarge

# Whole numbers beyond this lose digits in JSON readers that use doubles.
INT_MAX = 2**53 - 1
_REPLACEMENT = "\ufffd"


def check(value: Any, *, field: str, bytes_max: int, depth_max: int) -> Any:
    """Return ``value`` when it can be stored and read back unchanged.

    Raises `InvalidInput` (naming the path) for NUL, lone surrogates, NaN, Infinity, huge integers, non-text keys,
    foreign types or nesting over ``depth_max``, and `PayloadTooLarge` over ``bytes_max`` bytes of JSON.
    """
    _check(value, field, depth_max)
    size = len(dumps(value).encode())
    if size > bytes_max:
        raise PayloadTooLarge(
            f"{field} is {size} bytes as JSON, the limit is {bytes_max}; keep the data elsewhere, pass a reference.",
            [{"field": field, "problem": f"larger than {bytes_max} bytes"}],
        )
    return value


def _refuse(path: str, problem: str) -> InvalidInput:
    return InvalidInput(f"{path}: {problem}", [{"field": path, "problem": problem}])


def _check(value: Any, path: str, depth_left: int) -> None:
    if depth_left < 0:
        raise _refuse(path[:200], "nested too deeply")
    if isinstance(value, Mapping):
        for key, item in value.items():
            problem = text_problem(key) if isinstance(key, str) else f"must be text, not {type(key).__name__}"
            if problem:
                raise _refuse(path, f"a key {problem}")
            _check(item, f"{path}.{key}", depth_left - 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", depth_left - 1)
    elif problem := _scalar_problem(value):
        raise _refuse(path, problem)


def _scalar_problem(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return text_problem(value)
    if isinstance(value, int):
        return None if abs(value) <= INT_MAX else "a whole number beyond 2^53 - 1 loses digits in JSON; pass it as text"
    if isinstance(value, float):
        return None if math.isfinite(value) else "NaN and Infinity are not JSON"
    return f"{type(value).__name__} is not JSON; pass text, numbers, lists and objects"


def text_problem(text: str) -> str | None:
    """Why ``text`` cannot be stored in PostgreSQL, or None."""
    if "\x00" in text:
        return "contains a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "contains a lone surrogate"
    return None


def clean_text(text: str) -> str:
    """``text`` with NULs and lone surrogates replaced by U+FFFD."""
    if text_problem(text) is None:
        return text
    return text.replace("\x00", _REPLACEMENT).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clean(value: Any, depth_left: int = 64) -> Any:
    """The nearest JSON value: never fails. Common Python types get their standard text, the rest their ``str``."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int):
        return value if abs(value) <= INT_MAX else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth_left <= 0:
        return "…"
    if isinstance(value, BaseModel):
        return clean(value.model_dump(mode="json"), depth_left)
    if isinstance(value, Mapping):
        return {clean_text(str(key)): clean(item, depth_left - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [clean(item, depth_left - 1) for item in value]
    return _clean_scalar(value)


def _clean_scalar(value: Any) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return clean_text(value.decode(errors="replace"))
    if isinstance(value, UUID | Decimal):
        return str(value)
    return clean_text(str(value))[:10_000]


def dumps(value: Any) -> str:
    """Compact JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
