"""Jobs: what is queued and run for tasks."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.decorators import display as column

from tasks_app.admin import history
from tasks_app.admin.base import Tab
from tasks_app.admin.filters import ActionFilter, CreatedFilter, JobStatusFilter, OrganizationFilter, QueueFilter
from tasks_app.admin.verbs import Verb, VerbsAdmin
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import JOB_FINAL, JobStatus
from tasks_app.models import Job, Worker
from tasks_app.queries import explain
from tasks_app.services import jobs as services
from tasks_app.templatetags import desk as display


def _cancel(principal: Principal, row: Job, given: dict[str, Any]) -> str:
    job = services.cancel(principal, row.id, reason=given["reason"])
    return "The job is cancelled." if job.status == JobStatus.CANCELLED else "The job was asked to stop."


def _retry(principal: Principal, row: Job, given: dict[str, Any]) -> str:
    services.retry(principal, row.id, reason=given["reason"])
    return "The job is queued again with a fresh budget of attempts."


@admin.register(Job)
class JobAdmin(VerbsAdmin):
    noun = "job"
    list_display = ("what", "status_label", "progress_column", "queue_id", "priority", "attempts", "created", "took")
    list_display_links = ("what",)
    list_filter = (JobStatusFilter, ActionFilter, QueueFilter, ("created_at", CreatedFilter), OrganizationFilter)
    big_fields = ("input", "output", "error", "checkpoint")
    search_fields = ("id", "action_id")
    search_help_text = "Id, or part of the action"
    indexed_statuses = frozenset(
        {JobStatus.PENDING, JobStatus.RETRYING, JobStatus.RUNNING, JobStatus.FAILED, JobStatus.CANCELLED}
    )
    summary_template = "admin/desk/job_summary.html"
    tabs = (
        Tab("overview", "Overview", "admin/desk/job_overview.html"),
        Tab("executions", "Executions"),
        Tab("logs", "Logs"),
        Tab("events", "Events"),
        Tab("input", "Input"),
        Tab("output", "Output"),
        Tab("error", "Error"),
    )
    verbs = (
        Verb(
            name="cancel",
            label="Cancel",
            icon="cancel",
            question="Cancel this job?",
            explanation="A waiting job ends at once; a running one is told to stop and killed after its grace time.",
            permission="jobs.write",
            run=_cancel,
            offered=lambda job: job.status not in JOB_FINAL,
            danger=True,
            press="Yes, cancel it",
        ),
        Verb(
            name="retry",
            label="Retry",
            icon="refresh",
            question="Run this job again?",
            explanation="The same input, and a fresh budget of attempts.",
            permission="jobs.write",
            run=_retry,
            offered=lambda job: job.status == JobStatus.FAILED,
        ),
    )
    bulk = ("cancel", "retry")

    @column(description="Job")
    def what(self, job: Job) -> SafeString:
        return display.stacked(job.action_id, job.public_id)

    @column(description="Status")
    def status_label(self, job: Job) -> SafeString:
        return display.badge(job.status)

    @column(description="Progress")
    def progress_column(self, job: Job) -> SafeString | str:
        shown = job.progress if job.status not in JOB_FINAL else None
        return display.progress_bar(shown, small=True) or display.DASH

    @column(description="Attempts")
    def attempts(self, job: Job) -> str:
        return f"{job.counted_attempts} of {job.max_attempts}"

    @column(description="Created")
    def created(self, job: Job) -> SafeString | str:
        return display.ago(job.created_at)

    @column(description="Took")
    def took(self, job: Job) -> str:
        return display.seconds_text(history.took(job.started_at, job.completed_at))

    def search(self, rows: QuerySet, term: str) -> QuerySet:
        return rows.filter(action_id__icontains=term)

    def page_title(self, row: Job) -> str:
        return f"{row.action_id}"

    def is_live(self, row: Job) -> bool:
        return row.status not in JOB_FINAL

    def row_context(self, request: HttpRequest, row: Job) -> dict[str, Any]:
        return {
            "buttons": self.buttons(request, row),
            "took": history.took(row.started_at, row.completed_at),
            "explanation": explain.of(row.task, [row]) if self.is_live(row) else None,
            "worker": Worker.objects.filter(pk=row.worker_id).first() if row.worker_id else None,
        }

    def tab_context(self, request: HttpRequest, row: Job, tab: str) -> dict[str, Any]:
        if tab in {"overview", "executions"}:
            attempts = history.attempts([row.id])
            return {"executions": attempts, "timeline": history.timeline(attempts, row.created_at)}
        if tab == "logs":
            return history.logs(history.attempts([row.id]))
        if tab == "events":
            return {"events": history.events(task_id=row.task_id, job_id=row.id)}
        return {}
