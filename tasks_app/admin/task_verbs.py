"""What an operator may do to a task: each verb is one call of a service."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminTextareaWidget

from tasks_app.admin.verbs import ReasonForm, Verb
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.models import Task
from tasks_app.services import tasks as services
from tasks_app.templatetags import desk as display


class PriorityForm(ReasonForm):
    priority = forms.IntegerField(
        min_value=-100,
        max_value=100,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="-100 to 100; higher runs first, equal ones by age.",
    )
    field_order = ("priority", "reason")

    def __init__(self, *args: Any, row: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, row=row, initial={"priority": getattr(row, "priority", 0)}, **kwargs)


class ReplayForm(ReasonForm):
    """The input of the new task, editable. Secrets stay sealed: dots that are left alone mean the same secret."""

    input = forms.CharField(
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 14, "class": "d-code-input", "spellcheck": "false"}),
        help_text="JSON. Leave it as it is to run the same input again.",
    )
    field_order = ("input", "reason")

    def stored(self, row: Any) -> Any:
        """The input as it is now."""
        return row.input

    def __init__(self, *args: Any, row: Any = None, **kwargs: Any) -> None:
        self.shown, self.cut = display.pretty(self.stored(row) if row else {})
        super().__init__(*args, row=row, initial={"input": "" if self.cut else self.shown}, **kwargs)
        if self.cut:
            self.fields["input"].required = False
            self.fields["input"].help_text = "Too long to show. Leave it empty to run the same input again."

    def clean_input(self) -> Any:
        """None when nothing was changed, else the edited JSON; the service puts untouched secrets back."""
        text = self.cleaned_data["input"]
        if not text.strip() or text.replace("\r\n", "\n").strip() == self.shown.strip():
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(f"This is not JSON: {error}"[:300]) from error


def _cancel(principal: Principal, row: Task, given: dict[str, Any]) -> str:
    task = services.cancel(principal, row.id, reason=given["reason"])
    return "The task is cancelled." if task.status == TaskStatus.CANCELLED else "The task was asked to stop."


def _retry(principal: Principal, row: Task, given: dict[str, Any]) -> str:
    services.retry(principal, row.id, reason=given["reason"])
    return "The failed jobs of this task are queued again."


def _replay(principal: Principal, row: Task, given: dict[str, Any]) -> tuple[str, str]:
    made = services.replay(principal, row.id, input=given["input"], reason=given["reason"])
    return "A new task was created from this one.", display.page_address("task", made.task_id)


def _priority(principal: Principal, row: Task, given: dict[str, Any]) -> str:
    services.reprioritise(principal, row.id, given["priority"], reason=given["reason"])
    return f"The priority is now {given['priority']}."


VERBS = (
    Verb(
        name="cancel",
        label="Cancel",
        icon="cancel",
        question="Cancel this task?",
        explanation="What has not started ends at once. What runs is told to stop and killed after its grace time.",
        permission="tasks.write",
        run=_cancel,
        offered=lambda task: task.status not in TASK_FINAL,
        danger=True,
        press="Yes, cancel it",
    ),
    Verb(
        name="retry",
        label="Retry",
        icon="refresh",
        question="Run the failed jobs again?",
        explanation="The same task with the same input, and a fresh budget of attempts. What succeeded stays.",
        permission="tasks.write",
        run=_retry,
        offered=lambda task: task.status == TaskStatus.FAILED,
    ),
    Verb(
        name="replay",
        label="Replay",
        icon="replay",
        question="Run this again as a new task?",
        explanation="A new task of the same type. This one stays as it is.",
        permission="tasks.write",
        run=_replay,
        form_class=ReplayForm,
    ),
    Verb(
        name="priority",
        label="Priority",
        icon="low_priority",
        question="Change the priority?",
        explanation="Decides who of the waiting goes first; what runs already is not touched.",
        permission="tasks.write",
        run=_priority,
        form_class=PriorityForm,
        press="Set the priority",
        offered=lambda task: task.status not in TASK_FINAL,
    ),
)
