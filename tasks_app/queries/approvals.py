"""Reading approvals: what people are asked to decide."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.db.models import QuerySet
from pydantic import Field

from tasks_app.domain import ids
from tasks_app.domain.errors import NotFound
from tasks_app.domain.principal import Principal
from tasks_app.domain.waits import ApprovalState
from tasks_app.models import Approval
from tasks_app.queries import tasks
from tasks_app.queries.fields import ShortText, without_heavy
from tasks_app.queries.paging import NewestFirst, Page


class ApprovalFilter(NewestFirst):
    noun: ClassVar[str] = "approval"

    status: list[ApprovalState] = Field([], max_length=5, description="One or more, repeated or separated by commas.")
    task: ShortText | None = Field(None, description="Approvals of this task.")

    def narrow(self, principal: Principal) -> QuerySet[Approval]:
        principal.require("approvals.read")
        found = Approval.objects.filter(organization_id=principal.organization_id)
        if self.status:
            found = found.filter(status__in=self.status)
        if self.task is not None:
            task_id = ids.from_text("task", self.task)
            tasks.exists(principal, task_id)
            found = found.filter(task_id=task_id)
        return found


def page(principal: Principal, query: ApprovalFilter) -> Page[Approval]:
    """A page of the organisation's approvals; large details are left out."""
    return query.page(without_heavy(query.narrow(principal), "details"))


def get(principal: Principal, approval_id: UUID) -> Approval:
    """One approval. Raises `NotFound`."""
    principal.require("approvals.read")
    found = Approval.objects.filter(organization_id=principal.organization_id, id=approval_id).first()
    if found is None:
        raise NotFound("approval", approval_id)
    return found
