"""What a bulk decision is: the body of the doors and the input of the task that does it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from tasks_app.actions.definition import ActionInput
from tasks_app.domain import ids
from tasks_app.domain.dead_letters import RATE_PATTERN, RUNS_AGAIN, DeadLetterVerb
from tasks_app.domain.errors import NotFound
from tasks_app.domain.states import DeadLetterStatus
from tasks_app.queries.dead_letters import DeadLetterCriteria
from tasks_app.services.tasks.spec import Text

ACTION = "core.dead_letters.apply"
SELECTION_MAX = 1_000


def _dead_letter(text: str) -> str:
    try:
        ids.from_text("dead_letter", text)
    except NotFound:
        raise ValueError("is not the id of a dead letter") from None
    return text


class BulkSpec(ActionInput):
    """Decide about many dead letters: a selection, or all open ones that match a filter."""

    verb: DeadLetterVerb = Field(description="What to do with each: retry, replay, discard or cancel.")
    ids: list[Annotated[str, AfterValidator(_dead_letter)]] | None = Field(
        None, min_length=1, max_length=SELECTION_MAX, description="These; or give `filter`."
    )
    filter: DeadLetterCriteria | None = Field(
        None,
        description="All open ones that match (fields as for `GET /api/dead-letters`) and were given up before the "
        "bulk was asked for. `{}` means every one. Bulks that failed are left out unless `action` names them.",
    )
    reason: Text = Field(
        "", max_length=500, description="Why; it is kept with each letter and in the audit. Needed to discard."
    )
    canary: int | None = Field(
        None,
        ge=1,
        le=SELECTION_MAX,
        strict=True,
        description="First so many, the oldest; the rest when these went well.",
    )
    canary_wait_s: float = Field(
        600, ge=1, le=3_600, description="How long the canary may take, seconds; if it takes longer, the bulk stops."
    )
    rate: str | None = Field(None, pattern=RATE_PATTERN, description="No faster than this: `5/s`, `30/m`, `100/h`.")
    stop_after: int | None = Field(
        None, ge=0, le=1_000_000, strict=True,
        description="Stop when more than so many fail again with one fingerprint. Unset: 0 in the canary, then never.",
    )  # fmt: skip

    @model_validator(mode="after")
    def _makes_sense(self) -> BulkSpec:
        if (self.ids is None) == (self.filter is None):
            raise ValueError("give ids or filter, one of them")
        if self.filter is not None and set(self.filter.status) - {DeadLetterStatus.OPEN}:
            raise ValueError("filter.status: only open dead letters can be decided about")
        if self.verb not in RUNS_AGAIN and (self.canary is not None or self.stop_after is not None):
            raise ValueError("canary and stop_after need a verb that runs the work again: retry or replay")
        if self.verb == DeadLetterVerb.DISCARD and not self.reason.strip():
            raise ValueError("reason: say why they are discarded")
        return self
