"""What work cost: checked and made exact when it is said, never rounded afterwards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from uuid import UUID

from tasks_app.domain import clock, ids, jsonsafe
from tasks_app.domain.errors import ActionError

# Those of the columns, numeric(28, 12): the price of a single token needs seven or eight.
DECIMALS = 12
AMOUNT_MAX = Decimal(10) ** 16
TOKENS_MAX = jsonsafe.INT_MAX
NAME_MAX = 200

Number = Decimal | int | float | str
_CURRENCY = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True, slots=True)
class Cost:
    """One thing that was paid for. ``id`` is made with it, so that writing it twice stores it once."""

    id: UUID
    at: datetime
    provider: str
    model: str
    input_tokens: int
    output_tokens: int
    credits: Decimal
    amount: Decimal
    currency: str
    key: str | None


def cost(
    provider: str,
    model: str = "",
    *,
    input_tokens: int = 0,
    output_tokens: int = 0,
    credits: Number = 0,
    amount: Number | None = None,
    currency: str | None = None,
    key: str | None = None,
) -> Cost:
    """A checked cost. Raises `ActionError` INVALID_COST (not retryable) naming what is wrong."""
    if amount is not None and not (isinstance(currency, str) and _CURRENCY.fullmatch(currency)):
        raise _refused("currency", "give the ISO 4217 code of the amount, like EUR")
    if amount is None and currency is not None:
        raise _refused("amount", "a currency says nothing without an amount")
    return Cost(
        id=ids.new_id(),
        at=clock.now(),
        provider=_name("provider", provider, least=1),
        model=_name("model", model),
        input_tokens=_tokens("input_tokens", input_tokens),
        output_tokens=_tokens("output_tokens", output_tokens),
        credits=_exact("credits", credits),
        amount=_exact("amount", 0 if amount is None else amount),
        currency=currency or "",
        key=None if key is None else _name("key", key, least=1),
    )


def _refused(name: str, problem: str) -> ActionError:
    details = [{"field": name, "problem": problem}]
    return ActionError("INVALID_COST", f"ctx.cost: {name}: {problem}", retryable=False, details=details)


def _name(name: str, text: str, least: int = 0) -> str:
    if not isinstance(text, str) or not least <= len(text) <= NAME_MAX:
        raise _refused(name, f"must be text of {least} to {NAME_MAX} characters")
    return jsonsafe.clean_text(text)


def _tokens(name: str, count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= TOKENS_MAX:
        raise _refused(name, "must be a whole number, 0 or more")
    return count


def _exact(name: str, value: Number) -> Decimal:
    """``value`` as a decimal. A float is taken as it prints, cut to `DECIMALS`; anything else must fit exactly."""
    if isinstance(value, bool) or not isinstance(value, Decimal | int | float | str):
        raise _refused(name, "must be a Decimal, a whole number, a float or text")
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise _refused(name, f"{str(value)[:40]!r} is not a number") from None
    if not number.is_finite() or number < 0:
        raise _refused(name, "must be finite and not negative")
    if number >= AMOUNT_MAX:
        raise _refused(name, f"must be below {AMOUNT_MAX:,}")
    rounded = round(number, DECIMALS)
    if rounded != number and not isinstance(value, float):
        raise _refused(name, f"has more than {DECIMALS} decimals")
    return abs(rounded)
