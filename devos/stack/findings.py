"""What `devos doctor` reports: one finding a check, with what to do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """``hint`` says what to do; empty when all is well."""

    check: str
    level: Level
    message: str
    hint: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def ok(check: str, message: str) -> Finding:
    return Finding(check, "ok", message)


def warn(check: str, message: str, hint: str) -> Finding:
    return Finding(check, "warn", message, hint)


def fail(check: str, message: str, hint: str) -> Finding:
    return Finding(check, "fail", message, hint)
