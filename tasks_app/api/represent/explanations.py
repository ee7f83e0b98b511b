"""Explanations as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from tasks_app.api.represent.common import Out, public
from tasks_app.domain import ids
from tasks_app.domain.states import TaskStatus
from tasks_app.queries.explain import Explanation, Reason


class HolderOut(Out):
    type: str = Field(description="task, job, queue, worker, lease, action, event, approval or dead_letter.")
    id: str
    name: str


class ReasonOut(Out):
    code: str = Field(description="UPPER_SNAKE, stable.")
    message: str
    job: str | None = Field(description="None: it is about the whole task.")
    holder: HolderOut | None = Field(description="What stands in the way.")
    since: datetime | None
    until: datetime | None = Field(description="When it ends by itself, or is looked at again.")
    cleared_by: str = Field(description="Who can do something about it.")
    how: str


class ExplanationOut(Out):
    task: str
    status: TaskStatus
    running: bool
    reasons: list[ReasonOut] = Field(description="The one to look at first comes first; never empty.")


def explanation_out(found: Explanation) -> ExplanationOut:
    return ExplanationOut(
        task=ids.to_text("task", found.task_id),
        status=TaskStatus(found.status),
        running=found.running,
        reasons=[_reason_out(reason) for reason in found.reasons],
    )


def _reason_out(reason: Reason) -> ReasonOut:
    holder = reason.holder
    return ReasonOut(
        code=reason.code,
        message=reason.message,
        job=public("job", reason.job_id),
        holder=HolderOut(type=holder.type, id=holder.id, name=holder.name) if holder else None,
        since=reason.since,
        until=reason.until,
        cleared_by=reason.cleared_by,
        how=reason.how,
    )
