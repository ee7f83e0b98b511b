"""Approvals as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from tasks_app.api.represent.common import OMITTED, Json, Out, omitted, read
from tasks_app.domain import ids
from tasks_app.domain.waits import ApprovalState
from tasks_app.models import Approval


class ApprovalOut(Out):
    id: str
    task_id: str
    job_id: str
    title: str
    details: Json = Field(description="What helps to decide, from the action.")
    role: str = Field(description="The least role that may decide.")
    permission: str = Field(description="What else a key or user needs to decide.")
    status: ApprovalState
    decided_by: str = Field(description="As `type:id`; empty while nobody has decided.")
    decided_at: datetime | None = Field(description="Also when it expired or was cancelled.")
    comment: str
    created_at: datetime
    expires_at: datetime
    omitted: list[str] = OMITTED


class ApprovalList(Out):
    results: list[ApprovalOut]
    next: str | None


def approval_out(row: Approval) -> ApprovalOut:
    """An approval read by `queries.approvals`."""
    return ApprovalOut(
        id=row.public_id,
        task_id=ids.to_text("task", row.task_id),
        job_id=ids.to_text("job", row.job_id),
        title=row.title,
        details=read(row, "details"),
        role=row.role,
        permission=row.permission,
        status=ApprovalState(row.status),
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        comment=row.comment,
        created_at=row.created_at,
        expires_at=row.expires_at,
        omitted=omitted(row, "details"),
    )
