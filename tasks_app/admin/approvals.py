"""The inbox of approvals: what work waits for a person to decide."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.decorators import display as column

from tasks_app.admin.base import Tab
from tasks_app.admin.filters import ApprovalStatusFilter, CreatedFilter, OrganizationFilter
from tasks_app.admin.verbs import ReasonForm, Verb, VerbsAdmin
from tasks_app.domain.principal import Principal
from tasks_app.domain.waits import ApprovalState
from tasks_app.models import Approval
from tasks_app.services import approvals
from tasks_app.templatetags import desk as display


class CommentForm(ReasonForm):
    """A reason that the action gets to read."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["reason"].label = "Comment"
        self.fields["reason"].help_text = "The action that asked and the audit get it."


def _approve(principal: Principal, row: Approval, given: dict[str, Any]) -> str:
    approvals.approve(principal, row.pk, comment=given["reason"])
    return f"Approved: {row.title}. The work goes on."


def _reject(principal: Principal, row: Approval, given: dict[str, Any]) -> str:
    approvals.reject(principal, row.pk, comment=given["reason"])
    return f"Rejected: {row.title}."


def _is_open(row: Approval) -> bool:
    return row.status == ApprovalState.OPEN


@admin.register(Approval)
class ApprovalAdmin(VerbsAdmin):
    noun = "approval"
    list_display = ("what", "status_label", "role", "task_link", "created", "expires", "decided")
    list_display_links = ("what",)
    list_filter = (ApprovalStatusFilter, ("created_at", CreatedFilter), OrganizationFilter)
    big_fields = ("details",)
    search_fields = ("id", "title")
    search_help_text = "Id, or part of the title"
    indexed_statuses = frozenset(ApprovalState)
    summary_template = "admin/desk/approval_summary.html"
    tabs = (Tab("overview", "Overview", "admin/desk/approval_overview.html"),)
    bulk = ("approve", "reject")
    verbs = (
        Verb(
            name="approve",
            label="Approve",
            icon="check_circle",
            question="Approve this?",
            explanation="The work that asked goes on. The first decision counts and cannot be changed.",
            permission="approvals.decide",
            run=_approve,
            offered=_is_open,
            form_class=CommentForm,
            press="Yes, approve it",
        ),
        Verb(
            name="reject",
            label="Reject",
            icon="cancel",
            question="Reject this?",
            explanation="The work that asked learns of it and decides what that means. It cannot be changed.",
            permission="approvals.decide",
            run=_reject,
            offered=_is_open,
            form_class=CommentForm,
            danger=True,
            press="Yes, reject it",
        ),
    )

    @column(description="To decide")
    def what(self, row: Approval) -> SafeString:
        return display.stacked(row.title, row.public_id)

    @column(description="State")
    def status_label(self, row: Approval) -> SafeString:
        return display.badge(row.status)

    @column(description="Task")
    def task_link(self, row: Approval) -> SafeString | str:
        return display.link("task", row.task_id)

    @column(description="Asked")
    def created(self, row: Approval) -> SafeString | str:
        return display.ago(row.created_at)

    @column(description="Expires")
    def expires(self, row: Approval) -> SafeString | str:
        return display.ago(row.expires_at) if _is_open(row) else display.DASH

    @column(description="Decided by")
    def decided(self, row: Approval) -> str:
        return row.decided_by or display.DASH

    def search(self, rows: Any, term: str) -> Any:
        return rows.filter(title__icontains=term)

    def page_title(self, row: Approval) -> str:
        return row.title

    def is_live(self, row: Approval) -> bool:
        return _is_open(row)

    def row_context(self, request: HttpRequest, row: Approval) -> dict[str, Any]:
        return {"buttons": self.buttons(request, row)}
