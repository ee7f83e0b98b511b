"""What an operator may do about a dead letter, and about all that match a filter."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.http import QueryDict
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminTextInputWidget

from tasks_app.admin.filters import id_of, moment_of
from tasks_app.admin.task_verbs import ReplayForm
from tasks_app.admin.verbs import ReasonForm, RequiredReasonForm, Verb
from tasks_app.domain import ids, jsonsafe
from tasks_app.domain.dead_letters import RATE_PATTERN
from tasks_app.domain.errors import InvalidInput
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import DeadLetterStatus
from tasks_app.models import DeadLetterJob
from tasks_app.services import dead_letters as services
from tasks_app.services.dead_letters.spec import SELECTION_MAX
from tasks_app.templatetags import desk as display


class LetterReplayForm(ReplayForm):
    def stored(self, row: DeadLetterJob) -> Any:
        return row.job.input


class DiscardForm(RequiredReasonForm):
    missing = "Say why: the failure stays, and somebody will ask."


class AgainForm(ReasonForm):
    """How to run many again without a new storm."""

    canary = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=SELECTION_MAX,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="First so many, the oldest; the rest when none of them failed again. Empty: all at once.",
    )
    rate = forms.RegexField(
        RATE_PATTERN,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="No faster than this: 5/s, 30/m, 100/h. Empty: as fast as it goes.",
        error_messages={"invalid": "Write it like 5/s, 30/m or 100/h."},
    )
    field_order = ("canary", "rate", "reason")


def criteria_of(given: QueryDict) -> dict[str, Any]:
    """``{"filter": ...}`` or ``{"ids": ...}`` of a bulk, from the address of a list.

    Raises `InvalidInput` for what a bulk cannot mean: closed letters, or a search by a part of a name.
    """
    if given.get("status") not in {None, "", DeadLetterStatus.OPEN}:
        raise InvalidInput("Only open dead letters can be decided about. Choose the tab Open.")
    texts = {name: str(given.get(name, "")).strip() for name in ("action", "code", "fingerprint")}
    found = {name: text for name, text in texts.items() if text}
    start, end = moment_of(given.get("created_at_from")), moment_of(given.get("created_at_to"))
    if start:
        found["created_after"] = start.isoformat()
    if end:
        try:
            found["created_before"] = (end + timedelta(days=1)).isoformat()
        except OverflowError:
            raise InvalidInput("The last day is too far away.") from None
    term = str(given.get("q", "")).strip()
    letter = id_of("dead_letter", term) if term else None
    if letter:
        return {"ids": [ids.to_text("dead_letter", letter)]}
    if term and (len(term) != 64 or "fingerprint" in found):
        raise InvalidInput("A search by a part of a name is no filter for a bulk. Choose an action, a code or a group.")
    if term:
        found["fingerprint"] = term
    return {"filter": found}


def subjects_of(chosen: dict[str, Any], count: str) -> list[dict[str, Any]]:
    """What the confirmation of a bulk names instead of rows."""
    criteria = chosen.get("filter") or {}
    lines = [f"{name.replace('_', ' ')}: {jsonsafe.clean_text(str(value))[:200]}" for name, value in criteria.items()]
    return [{"title": f"{count} open dead letters"}, *({"title": line} for line in lines)]


def _retry(principal: Principal, row: DeadLetterJob, given: dict[str, Any]) -> str:
    services.retry(principal, row.id, reason=given["reason"])
    return "The job is queued again. If it is given up again, it gets a new dead letter."


def _replay(principal: Principal, row: DeadLetterJob, given: dict[str, Any]) -> tuple[str, str]:
    letter = services.replay(principal, row.id, input=given.get("input"), reason=given["reason"])
    return "A new task does the work.", display.page_address("task", letter.replay_task_id)


def _discard(principal: Principal, row: DeadLetterJob, given: dict[str, Any]) -> str:
    services.discard(principal, row.id, reason=given["reason"])
    return "The dead letter is closed."


def _cancel(principal: Principal, row: DeadLetterJob, given: dict[str, Any]) -> str:
    services.cancel(principal, row.id, reason=given["reason"])
    return "The dead letter is closed, and what was left of its task is cancelled."


def _is_open(row: DeadLetterJob) -> bool:
    return row.status == DeadLetterStatus.OPEN


VERBS = (
    Verb(
        name="retry",
        label="Retry",
        icon="refresh",
        question="Run the work of these dead letters again?",
        explanation="The same jobs and input, with a fresh budget of attempts. What fails again gets a new letter.",
        permission="dead_letters.write",
        run=_retry,
        offered=_is_open,
        press="Retry",
    ),
    Verb(
        name="replay",
        label="Replay",
        icon="replay",
        question="Do this work again as new tasks?",
        explanation="New tasks of the same type. What failed stays as it is.",
        permission="dead_letters.write",
        run=_replay,
        offered=_is_open,
        form_class=LetterReplayForm,
        press="Replay",
    ),
    Verb(
        name="discard",
        label="Discard",
        icon="delete_sweep",
        question="Give this work up for good?",
        explanation="Nothing runs. The failure stays in the record, with your reason.",
        permission="dead_letters.write",
        run=_discard,
        offered=_is_open,
        form_class=DiscardForm,
        bulk_form_class=DiscardForm,
        danger=True,
        press="Yes, discard",
    ),
    Verb(
        name="cancel",
        label="Cancel",
        icon="cancel",
        question="Is this work not wanted any more?",
        explanation="Closes the letters, and cancels what has not ended of their tasks and of the tasks below.",
        permission="dead_letters.write",
        run=_cancel,
        offered=_is_open,
        danger=True,
        press="Yes, cancel",
    ),
)
