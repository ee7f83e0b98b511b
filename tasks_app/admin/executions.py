"""Executions: one row an attempt, written once."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.decorators import display as column

from tasks_app.admin import history
from tasks_app.admin.base import RuntimeAdmin, Tab
from tasks_app.admin.filters import ActionFilter, CreatedFilter, ExecutionStatusFilter, OrganizationFilter
from tasks_app.domain.states import EXECUTION_STOPPED, ExecutionStatus
from tasks_app.models import Execution
from tasks_app.queries import actors
from tasks_app.templatetags import desk as display


@admin.register(Execution)
class ExecutionAdmin(RuntimeAdmin):
    noun = "execution"
    list_display = ("what", "status_label", "attempt_text", "mode", "error_code", "started", "took")
    list_display_links = ("what",)
    list_filter = (ExecutionStatusFilter, ActionFilter, ("created_at", CreatedFilter), OrganizationFilter)
    list_select_related = ("organization",)
    big_fields = ("input", "output", "progress")
    search_fields = ("id", "action_id")
    search_help_text = "Id, or the whole action"
    indexed = (*RuntimeAdmin.indexed, frozenset({"action"}), frozenset({"action", "organization"}))
    indexed_statuses = EXECUTION_STOPPED
    summary_template = "admin/desk/execution_summary.html"
    tabs = (
        Tab("overview", "Overview", "admin/desk/execution_overview.html"),
        Tab("logs", "Logs"),
        Tab("input", "Input", "admin/desk/execution_input.html"),
        Tab("output", "Output"),
        Tab("error", "Error"),
    )

    @column(description="Execution")
    def what(self, execution: Execution) -> SafeString:
        return display.stacked(execution.action_id, execution.public_id)

    @column(description="Status")
    def status_label(self, execution: Execution) -> SafeString:
        return display.badge(execution.status)

    @column(description="Attempt")
    def attempt_text(self, execution: Execution) -> str:
        return f"{execution.attempt} of {execution.max_attempts}"

    @column(description="Error")
    def error_code(self, execution: Execution) -> str:
        error = execution.error
        return str(error.get("code", "")) if isinstance(error, dict) else display.DASH

    @column(description="Started")
    def started(self, execution: Execution) -> SafeString | str:
        return display.ago(execution.started_at or execution.created_at)

    @column(description="Took")
    def took(self, execution: Execution) -> str:
        return display.seconds_text(self._took(execution))

    def _took(self, execution: Execution) -> float | None:
        if execution.duration_ms is not None:
            return execution.duration_ms / 1000
        return history.took(execution.started_at, execution.completed_at)

    def search(self, rows: QuerySet, term: str) -> QuerySet:
        return rows.filter(action_id__icontains=term)

    def page_queryset(self, request: HttpRequest) -> QuerySet:
        return super().page_queryset(request).select_related("job").defer("job__output", "job__checkpoint")

    def page_title(self, row: Execution) -> str:
        return f"{row.action_id}, attempt {row.attempt}"

    def is_live(self, row: Execution) -> bool:
        return row.status == ExecutionStatus.RUNNING

    def row_context(self, request: HttpRequest, row: Execution) -> dict[str, Any]:
        history.with_workers([row])
        running = row.status == ExecutionStatus.RUNNING and row.job is not None
        return {
            "took": self._took(row),
            "who": actors.name_of(row.actor_type, row.actor_id),
            "progress": row.job.progress if running and row.job else row.progress,
        }

    def tab_context(self, request: HttpRequest, row: Execution, tab: str) -> dict[str, Any]:
        if tab == "logs":
            return history.logs([row])
        return {"effective_input": row.effective_input} if tab == "input" else {}
