"""Dead letters: jobs that were given up. Read-only here; a retry goes through the task."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.decorators import display as column

from tasks_app.admin import history
from tasks_app.admin.base import RuntimeAdmin, Tab
from tasks_app.admin.filters import ActionFilter, CreatedFilter, DeadLetterStatusFilter, OrganizationFilter
from tasks_app.domain.states import DeadLetterStatus
from tasks_app.models import DeadLetterJob, Execution
from tasks_app.templatetags import desk as display


@admin.register(DeadLetterJob)
class DeadLetterAdmin(RuntimeAdmin):
    noun = "dead_letter"
    list_display = ("what", "status_label", "error_line", "created", "decided")
    list_display_links = ("what",)
    list_filter = (DeadLetterStatusFilter, ActionFilter, ("created_at", CreatedFilter), OrganizationFilter)
    list_select_related = ("organization",)
    search_fields = ("id", "action_id")
    search_help_text = "Id, fingerprint, or part of the action"
    indexed_statuses = frozenset(DeadLetterStatus)
    summary_template = "admin/desk/dead_letter_summary.html"
    tabs = (
        Tab("error", "Error"),
        Tab("logs", "Logs"),
        Tab("input", "Input", "admin/desk/execution_input.html"),
    )

    @column(description="Job given up")
    def what(self, row: DeadLetterJob) -> SafeString:
        return display.stacked(row.action_id, row.public_id)

    @column(description="State")
    def status_label(self, row: DeadLetterJob) -> SafeString:
        return display.badge(row.status)

    @column(description="Error")
    def error_line(self, row: DeadLetterJob) -> str:
        return display.error_text(row.error)[:120]

    @column(description="Given up")
    def created(self, row: DeadLetterJob) -> SafeString | str:
        return display.ago(row.created_at)

    @column(description="Decided")
    def decided(self, row: DeadLetterJob) -> str:
        return row.decided_by or display.DASH

    def search(self, rows: Any, term: str) -> Any:
        return rows.filter(fingerprint=term) if len(term) == 64 else rows.filter(action_id__icontains=term)

    def page_queryset(self, request: HttpRequest) -> Any:
        return super().page_queryset(request).select_related("job").defer("job__output", "job__checkpoint")

    def page_title(self, row: DeadLetterJob) -> str:
        return f"{row.action_id}: {row.error.get('code', 'ERROR') if isinstance(row.error, dict) else 'ERROR'}"

    def tab_context(self, request: HttpRequest, row: DeadLetterJob, tab: str) -> dict[str, Any]:
        if tab == "logs":
            return history.logs(list(Execution.objects.filter(pk=row.execution_id).defer("output", "input")))
        return {"effective_input": row.job.input} if tab == "input" else {}
