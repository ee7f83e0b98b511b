"""What can be decided about a dead letter, and the pace of deciding about many."""

from __future__ import annotations

import re
from enum import StrEnum

from tasks_app.domain.states import DeadLetterStatus


class DeadLetterVerb(StrEnum):
    RETRY = "retry"
    REPLAY = "replay"
    DISCARD = "discard"
    CANCEL = "cancel"


TARGET = {
    DeadLetterVerb.RETRY: DeadLetterStatus.RETRIED,
    DeadLetterVerb.REPLAY: DeadLetterStatus.REPLAYED,
    DeadLetterVerb.DISCARD: DeadLetterStatus.DISCARDED,
    DeadLetterVerb.CANCEL: DeadLetterStatus.CANCELLED,
}
# These start work again, so there is an outcome to wait for.
RUNS_AGAIN = frozenset({DeadLetterVerb.RETRY, DeadLetterVerb.REPLAY})

RATE_PATTERN = r"^[1-9][0-9]{0,5}/(s|m|h)$"
_SECONDS = {"s": 1, "m": 60, "h": 3_600}


def rows_per_s(rate: str) -> float:
    """``"30/m"`` -> 0.5. Raises ValueError for anything that is not `RATE_PATTERN`."""
    if not re.fullmatch(RATE_PATTERN, rate):
        raise ValueError(f"{rate!r} is no rate; write it like 5/s or 30/m")
    count, unit = rate.split("/")
    return int(count) / _SECONDS[unit]


def batch_size(rate: str | None, most: int) -> int:
    """How many rows to decide about at once: about one second's worth, never more than ``most``."""
    return most if rate is None else max(1, min(most, int(rows_per_s(rate))))
