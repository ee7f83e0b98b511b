"""Tasks: lists by status, and the page where an operator watches one and acts on it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.decorators import display as column

from tasks_app.admin import history
from tasks_app.admin.base import RuntimeAdmin, Tab
from tasks_app.admin.filters import (
    CorrelationFilter,
    CreatedFilter,
    OrganizationFilter,
    ParentFilter,
    PriorityFilter,
    ProjectFilter,
    TaskStatusFilter,
    TypeFilter,
)
from tasks_app.admin.task_verbs import VERBS
from tasks_app.admin.verbs import VerbsAdmin
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.models import Task
from tasks_app.queries import actors, explain
from tasks_app.templatetags import desk as display

CHILDREN_SHOWN = 50


@admin.register(Task)
class TaskAdmin(VerbsAdmin):
    noun = "task"
    list_display = ("what", "status_label", "progress_column", "priority", "project_name", "who", "created", "took")
    list_display_links = ("what",)
    list_filter = (
        TaskStatusFilter,
        TypeFilter,
        ProjectFilter,
        PriorityFilter,
        ("created_at", CreatedFilter),
        ParentFilter,
        CorrelationFilter,
        OrganizationFilter,
    )
    list_select_related = ("organization", "project")
    big_fields = ("input", "output", "error", "description")
    search_fields = ("id", "name", "type", "correlation_id")
    search_help_text = "Id, correlation id, or part of the name or type"
    indexed = (
        *RuntimeAdmin.indexed,
        frozenset({"project"}),
        frozenset({"parent"}),
        frozenset({"correlation"}),
    )
    indexed_statuses = frozenset(set(TaskStatus) - {TaskStatus.COMPLETED})
    verbs = VERBS
    bulk = ("cancel", "retry")
    summary_template = "admin/desk/task_summary.html"
    tabs = (
        Tab("overview", "Overview", "admin/desk/task_overview.html"),
        Tab("progress", "Progress", "admin/desk/task_progress.html"),
        Tab("executions", "Executions", "admin/desk/tab_executions.html"),
        Tab("logs", "Logs"),
        Tab("events", "Events"),
        Tab("children", "Children"),
        Tab("input", "Input"),
        Tab("output", "Output"),
        Tab("error", "Error"),
    )

    # -- list

    @column(description="Task")
    def what(self, task: Task) -> SafeString:
        title = task.name or task.type
        return display.stacked(title, f"{task.type} · {task.public_id}" if title != task.type else task.public_id)

    @column(description="Status")
    def status_label(self, task: Task) -> SafeString:
        return display.badge(task.status)

    @column(description="Progress")
    def progress_column(self, task: Task) -> SafeString | str:
        if task.status not in TASK_FINAL and task.progress:  # type: ignore[attr-defined]
            return display.progress_bar(task.progress, small=True)  # type: ignore[attr-defined]
        attempts = task.attempts  # type: ignore[attr-defined]
        return f"{attempts} attempt{'' if attempts == 1 else 's'}" if attempts else display.DASH

    @column(description="Project")
    def project_name(self, task: Task) -> str:
        return task.project.name if task.project else display.DASH

    @column(description="By")
    def who(self, task: Task) -> str:
        return actors.name_of(task.created_by_type, task.created_by_id)

    @column(description="Created")
    def created(self, task: Task) -> SafeString | str:
        return display.ago(task.created_at)

    @column(description="Took")
    def took(self, task: Task) -> str:
        return display.seconds_text(history.took(task.started_at, task.completed_at))

    def prepare_rows(self, request: HttpRequest, rows: list[Task]) -> list[Task]:
        history.attach_jobs(rows)
        return rows

    def is_exact_search(self, request: HttpRequest) -> bool:
        return super().is_exact_search(request) or self._is_correlation(request.GET.get("q", ""))

    def _is_correlation(self, term: str) -> bool:
        term = history.text(term.strip())
        return bool(term) and Task.objects.filter(correlation_id=term).exists()

    def search(self, rows: QuerySet, term: str) -> QuerySet:
        if self._is_correlation(term):
            return rows.filter(correlation_id=history.text(term))
        return rows.filter(Q(name__icontains=term) | Q(type__icontains=term))

    # -- page

    def page_title(self, row: Task) -> str:
        return row.name or row.type

    def is_live(self, row: Task) -> bool:
        return row.status not in TASK_FINAL

    def row_context(self, request: HttpRequest, row: Task) -> dict[str, Any]:
        jobs = history.jobs_of(row.id)
        return {
            "jobs": jobs,
            "job": jobs[0] if jobs else None,
            "buttons": self.buttons(request, row),
            "who": actors.name_of(row.created_by_type, row.created_by_id),
            "took": history.took(row.started_at, row.completed_at),
            "progress": next((job.progress for job in jobs if job.progress), None),
            "explanation": explain.of(row) if self.is_live(row) else None,
        }

    def tab_context(self, request: HttpRequest, row: Task, tab: str) -> dict[str, Any]:
        if tab in {"overview", "progress", "executions"}:
            attempts = history.attempts(history.job_ids(row.id))
            context: dict[str, Any] = {"executions": attempts, "timeline": history.timeline(attempts, row.created_at)}
            if tab == "overview":
                replays = Task.objects.filter(replay_of_id=row.id).order_by("-id")
                context["replays"] = list(replays.values_list("id", flat=True)[:10])
                context["has_children"] = Task.objects.filter(parent_task_id=row.id).exists()
            return context
        if tab == "logs":
            attempts = history.attempts(history.job_ids(row.id))
            return history.logs(attempts, task_id=row.id)
        if tab == "events":
            return {"events": history.events(task_id=row.id)}
        if tab == "children":
            found = Task.objects.filter(parent_task_id=row.id).defer(*self.big_fields).order_by("-id")
            children = list(found[: CHILDREN_SHOWN + 1])
            history.attach_jobs(children)
            return {
                "children": children[:CHILDREN_SHOWN],
                "more_url": display.list_address("task", f"parent={row.public_id}")
                if len(children) > CHILDREN_SHOWN
                else "",
            }
        return {}
