"""Dead letters as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from tasks_app.api.represent.common import OMITTED, Json, Out, omitted, public, read
from tasks_app.domain import ids
from tasks_app.domain.states import DeadLetterStatus
from tasks_app.models import DeadLetterJob, DeadLetterResult
from tasks_app.queries.dead_letters import Group
from tasks_app.queries.paging import Count


class DeadLetterOut(Out):
    id: str
    task_id: str
    job_id: str
    execution_id: str = Field(description="The last one; its log says more.")
    action_id: str
    code: str | None = Field(description="Of the error.")
    error: Json
    fingerprint: str = Field(description="The same for all letters of one cause.")
    status: DeadLetterStatus
    decided_by: str
    decided_at: datetime | None
    reason: str
    replay_task: str | None = Field(description="The new task, once it is replayed.")
    created_at: datetime
    omitted: list[str] = OMITTED


class DeadLetterList(Out):
    results: list[DeadLetterOut]
    next: str | None


class DeadLetterGroupOut(Out):
    fingerprint: str
    action_id: str
    code: str | None
    count: int
    count_exact: bool = Field(description="False: there are more than `count`.")
    first_seen_at: datetime
    last_seen_at: datetime
    sample: str = Field(description="The newest letter of the group.")
    error: Json = Field(description="Of the sample, without its traceback.")


class DeadLetterGroupList(Out):
    results: list[DeadLetterGroupOut]
    next: str | None


class DeadLetterCountOut(Out):
    """What a bulk would decide about."""

    count: int
    exact: bool = Field(description="False: there are more than `count`.")


class DeadLetterResultOut(Out):
    dead_letter_id: str
    outcome: str = Field(description="done or refused.")
    code: str = Field(description="Why it was refused; empty when it was not.")
    message: str
    job_id: str | None = Field(description="The job that runs now because of it.")
    created_at: datetime


class DeadLetterResultList(Out):
    results: list[DeadLetterResultOut]
    next: str | None


def dead_letter_out(letter: DeadLetterJob) -> DeadLetterOut:
    """A letter read by `queries.dead_letters`."""
    return DeadLetterOut(
        id=letter.public_id,
        task_id=ids.to_text("task", letter.task_id),  # type: ignore[attr-defined]
        job_id=ids.to_text("job", letter.job_id),
        execution_id=ids.to_text("execution", letter.execution_id),
        action_id=letter.action_id,
        code=letter.code,
        error=read(letter, "error"),
        fingerprint=letter.fingerprint,
        status=DeadLetterStatus(letter.status),
        decided_by=letter.decided_by,
        decided_at=letter.decided_at,
        reason=letter.reason,
        replay_task=public("task", letter.replay_task_id),
        created_at=letter.created_at,
        omitted=omitted(letter, "error"),
    )


def group_out(group: Group) -> DeadLetterGroupOut:
    return DeadLetterGroupOut(
        fingerprint=group.fingerprint,
        action_id=group.action_id,
        code=group.code,
        count=group.count.value,
        count_exact=group.count.exact,
        first_seen_at=group.first_seen_at,
        last_seen_at=group.last_seen_at,
        sample=ids.to_text("dead_letter", group.sample_id),
        error=group.error,
    )


def count_out(count: Count) -> DeadLetterCountOut:
    return DeadLetterCountOut(count=count.value, exact=count.exact)


def result_out(row: DeadLetterResult) -> DeadLetterResultOut:
    return DeadLetterResultOut(
        dead_letter_id=ids.to_text("dead_letter", row.dead_letter_id),
        outcome=row.outcome,
        code=row.code,
        message=row.message,
        job_id=public("job", row.job_id),
        created_at=row.created_at,
    )
