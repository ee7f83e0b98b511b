"""When a failed attempt is tried again, and after how long."""

from __future__ import annotations

import random
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

# Rule source: the spec's list of retryable and non-retryable errors.
RETRYABLE_CODES = frozenset(
    {
        "NETWORK_TIMEOUT",
        "CONNECTION_RESET",
        "RATE_LIMIT",
        "TEMPORARY_UNAVAILABLE",
        "TEMPORARY_DATABASE_ERROR",
        "TIMEOUT",
        "ACTION_ERROR",
        "ACTION_NOT_REGISTERED",
        "OUT_OF_MEMORY",
    }
)


class RetryPolicy(BaseModel):
    """How often and how patiently a job is retried.

    ``delay_ms`` is the first wait; *fixed* repeats it, *linear* adds it each time, *exponential* doubles it.
    ``jitter`` spreads the wait evenly between ``min_delay_ms`` and the computed value. ``retry_on`` lists the error
    codes that are retried; None means the defaults of the platform.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_attempts: int = Field(3, ge=1, le=100)
    strategy: Literal["fixed", "linear", "exponential"] = "exponential"
    delay_ms: int = Field(1_000, ge=0, le=86_400_000)
    max_delay_ms: int = Field(3_600_000, ge=0, le=7 * 86_400_000)
    min_delay_ms: int = Field(0, ge=0, le=86_400_000)
    jitter: bool = False
    retry_on: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _floor_below_cap(self) -> RetryPolicy:
        if self.min_delay_ms > self.max_delay_ms:
            raise ValueError("min_delay_ms must not be above max_delay_ms")
        return self

    def is_retryable(self, code: str, said: bool | None = None) -> bool:
        """Whether an error is worth another attempt. ``said``: what the error itself decided, None when it did not."""
        if said is not None:
            return said
        return code in (RETRYABLE_CODES if self.retry_on is None else self.retry_on)

    def delay_s(self, failures: int, retry_after_s: float | None = None) -> float:
        """Seconds to wait after the ``failures``-th failure (1, 2, ...). Retry-After is honoured up to the cap."""
        if retry_after_s is not None:
            wait_ms = retry_after_s * 1000
        elif self.strategy == "fixed":
            wait_ms = self.delay_ms
        elif self.strategy == "linear":
            wait_ms = self.delay_ms * failures
        else:
            wait_ms = self.delay_ms * 2 ** min(failures - 1, 40)
        capped = min(max(wait_ms, self.min_delay_ms), self.max_delay_ms)
        if self.jitter and retry_after_s is None:
            capped = random.uniform(self.min_delay_ms, capped)
        return capped / 1000
