"""Reading JSON strictly: what PostgreSQL, another reader or a person could not take is refused before anything runs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.parsers import BaseParser

from tasks_app.domain import jsonsafe
from tasks_app.domain.errors import InvalidInput, PayloadTooLarge

# The request wraps what is stored: {"tasks": [{"input": ...}]}.
_WRAPPING_LEVELS = 4
_CHUNK = 65_536


def too_large(limit: int) -> PayloadTooLarge:
    """The answer to a body over the limit."""
    return PayloadTooLarge(
        f"The request body is larger than {limit} bytes. Keep big data elsewhere and pass a reference to it.",
        [{"field": "body", "problem": f"larger than {limit} bytes"}],
    )


def _refuse(problem: str) -> InvalidInput:
    return InvalidInput(f"The request body {problem}", [{"field": "body", "problem": problem}])


class StrictJSONParser(BaseParser):
    """JSON in UTF-8 without NaN, Infinity, repeated names, NUL, lone surrogates or deep nesting."""

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return loads(_read(stream, _announced(parser_context)))


def _announced(context: Mapping[str, Any] | None) -> int:
    text = context["request"].META.get("CONTENT_LENGTH") if context else ""
    return int(text) if text and text.isdigit() and len(text) < 16 else 0


def _read(stream: IO[bytes], announced: int) -> bytes:
    """The body, reading no more than the limit of it."""
    limit = settings.DEVOS.body_bytes_max
    if announced > limit:
        raise too_large(limit)
    read = bytearray()
    while chunk := stream.read(_CHUNK):
        read += chunk
        if len(read) > limit:
            raise too_large(limit)
    return bytes(read)


def loads(raw: bytes) -> Any:
    """The value in ``raw``. Raises `InvalidInput` saying what is wrong with it."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refuse(f"is not UTF-8 (byte {error.start}).") from error
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole
        )
    except RecursionError as error:
        raise _refuse("is nested too deeply.") from error
    except json.JSONDecodeError as error:
        raise _refuse(f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from error
    _check(value)
    return value


def _check(value: Any) -> None:
    knobs = settings.DEVOS
    limits = {"bytes_max": knobs.body_bytes_max * 2, "depth_max": knobs.json_depth_max + _WRAPPING_LEVELS}
    if isinstance(value, dict):
        for name, item in value.items():
            if jsonsafe.text_problem(name):
                raise _refuse("has a name that contains a NUL character or a lone surrogate.")
            jsonsafe.check(item, field=name[:100], **limits)
    else:
        jsonsafe.check(value, field="body", **limits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _refuse(f"has the name {name[:100]!r} twice in one object.")
        found[name] = value
    return found


def _no_constant(text: str) -> Any:
    raise _refuse(f"contains {text}, which is not JSON.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _refuse(f"contains the number {text[:40]}, which is too large.")
    return number


def _whole(text: str) -> int:
    # Python refuses to read more than 4,300 digits; nothing that long can be meant.
    if len(text) > 100:
        raise _refuse(f"contains a number of {len(text)} digits, which is too large.")
    return int(text)
