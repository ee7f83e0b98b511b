"""The machine: queues and workers. Both serve every organisation."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.decorators import display as column
from unfold.widgets import UnfoldAdminSelectWidget

from tasks_app.admin import history
from tasks_app.admin.base import RuntimeAdmin, Tab
from tasks_app.admin.changelist import PlainChangeList
from tasks_app.admin.principal import desk_of
from tasks_app.admin.verbs import RequiredReasonForm, Verb, VerbsAdmin
from tasks_app.domain import clock, jsonsafe
from tasks_app.domain.principal import Principal
from tasks_app.models import Job, Queue, Worker
from tasks_app.queries import dashboard
from tasks_app.services import queues as services
from tasks_app.templatetags import desk as display

RUNNING_COUNTED = 5_000
_UNTIL = {"": "Until somebody resumes it", "15": "15 minutes", "60": "1 hour", "240": "4 hours", "1440": "1 day"}


class PauseForm(RequiredReasonForm):
    missing = "Say why: whoever finds the queue paused will ask."
    for_minutes = forms.ChoiceField(
        label="For how long", choices=list(_UNTIL.items()), required=False, widget=UnfoldAdminSelectWidget
    )
    field_order = ("for_minutes", "reason")


def _pause(principal: Principal, row: Queue, given: dict[str, Any]) -> str:
    minutes = given["for_minutes"]
    until = clock.now() + timedelta(minutes=int(minutes)) if minutes else None
    services.pause(principal, row.name, given["reason"], until)
    return f"The queue {row.name} is paused: nothing is taken from it."


def _resume(principal: Principal, row: Queue, given: dict[str, Any]) -> str:
    services.resume(principal, row.name, reason=given["reason"])
    return f"The queue {row.name} runs again."


class SmallTableAdmin(RuntimeAdmin):
    """For tables of a few rows: an ordinary list."""

    organization_field = None
    list_select_related = ()
    list_filter = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return PlainChangeList

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, search_term: str) -> tuple[QuerySet, bool]:
        return queryset, False


def _is_paused(queue: Queue) -> bool:
    return queue.paused_at is not None and (queue.paused_until is None or queue.paused_until > clock.now())


@admin.register(Queue)
class QueueAdmin(VerbsAdmin, SmallTableAdmin):
    noun = "queue"
    list_display = ("name", "state", "depth", "running", "waiting", "oldest")
    ordering = ("name",)
    summary_template = "admin/desk/queue_summary.html"
    tabs = (Tab("overview", "Overview", "admin/desk/queue_overview.html"),)
    verbs = (
        Verb(
            name="pause",
            label="Pause",
            icon="pause",
            question="Pause this queue?",
            explanation="Nothing more is taken from it, for any organisation. What runs goes on.",
            permission="queues.pause",
            run=_pause,
            form_class=PauseForm,
            offered=lambda queue: not _is_paused(queue),
            danger=True,
        ),
        Verb(
            name="resume",
            label="Resume",
            icon="play_arrow",
            question="Resume this queue?",
            explanation="Workers take jobs from it again at once.",
            permission="queues.pause",
            run=_resume,
            offered=lambda queue: queue.paused_at is not None,
        ),
    )

    def prepare_rows(self, request: HttpRequest, rows: list[Queue]) -> list[Queue]:
        numbers = {row["name"]: row for row in dashboard.queues()}
        for queue in rows:
            queue.numbers = numbers.get(queue.name, {})  # type: ignore[attr-defined]
        return rows

    @column(description="State")
    def state(self, queue: Queue) -> SafeString:
        return display.badge("paused" if _is_paused(queue) else "active")

    @column(description="Ready")
    def depth(self, queue: Any) -> str:
        return str(queue.numbers.get("depth_text", display.DASH))

    @column(description="Running")
    def running(self, queue: Any) -> str:
        return f"{queue.numbers.get('running', 0):,}"

    @column(description="Waiting")
    def waiting(self, queue: Any) -> str:
        return f"{queue.numbers.get('waiting', 0):,}"

    @column(description="Oldest ready")
    def oldest(self, queue: Any) -> str:
        return display.seconds_text(queue.numbers.get("oldest_s"))

    def find(self, request: HttpRequest, object_id: str) -> Queue:
        row = self.get_queryset(request).filter(name=jsonsafe.clean_text(object_id)[:63]).first()
        if row is None:
            raise Http404(f"There is no queue {object_id[:80]!r}.")
        return row

    def is_live(self, row: Queue) -> bool:
        return True

    def row_context(self, request: HttpRequest, row: Queue) -> dict[str, Any]:
        numbers = next((q for q in dashboard.queues() if q["name"] == row.name), {})
        return {"buttons": self.buttons(request, row), "numbers": numbers, "paused": _is_paused(row)}

    def tab_context(self, request: HttpRequest, row: Queue, tab: str) -> dict[str, Any]:
        narrow = desk_of(request).narrow
        jobs = Job.objects.defer("input", "output", "checkpoint")
        ready = narrow(jobs.filter(queue=row).extra(where=["jobs.status = 'queued'"]))
        running = narrow(jobs.filter(queue=row, lease_expires_at__isnull=False))
        return {
            "ready_jobs": list(ready.order_by("-priority", "id")[:20]),
            "running_jobs": list(running.order_by("started_at")[:20]),
        }


@admin.register(Worker)
class WorkerAdmin(SmallTableAdmin):
    noun = "worker"
    list_display = ("what", "state", "serves", "concurrency", "running", "memory", "seen", "up")
    list_display_links = ("what",)
    ordering = ("-last_seen_at",)
    summary_template = "admin/desk/worker_summary.html"
    tabs = (Tab("overview", "Overview", "admin/desk/worker_overview.html"),)

    @staticmethod
    def status(worker: Worker) -> str:
        """alive, stopped (said goodbye) or dead (went silent for longer than a lease)."""
        if worker.stopped_at:
            return "stopped"
        silent = (timezone.now() - worker.last_seen_at).total_seconds()
        return "alive" if silent <= settings.DEVOS.lease_s else "dead"

    def prepare_rows(self, request: HttpRequest, rows: list[Worker]) -> list[Worker]:
        held = Job.objects.filter(lease_expires_at__isnull=False).values_list("worker_id", flat=True)
        running = Counter(held[:RUNNING_COUNTED])
        for worker in rows:
            worker.running_jobs = running[worker.pk]  # type: ignore[attr-defined]
        return rows

    @column(description="Worker")
    def what(self, worker: Worker) -> SafeString:
        return display.stacked(str(worker), worker.public_id)

    @column(description="State")
    def state(self, worker: Worker) -> SafeString:
        return display.badge(self.status(worker))

    @column(description="Queues")
    def serves(self, worker: Worker) -> str:
        return ", ".join(worker.queues)

    @column(description="Running")
    def running(self, worker: Any) -> str:
        return str(worker.running_jobs)

    @column(description="Memory")
    def memory(self, worker: Worker) -> str:
        return f"{worker.rss_mb:.0f} MB" if worker.rss_mb is not None else display.DASH

    @column(description="Last seen")
    def seen(self, worker: Worker) -> SafeString | str:
        return display.ago(worker.last_seen_at)

    @column(description="Up for")
    def up(self, worker: Worker) -> str:
        end = worker.stopped_at or (worker.last_seen_at if self.status(worker) == "dead" else None)
        return display.seconds_text(history.took(worker.started_at, end))

    def is_live(self, row: Worker) -> bool:
        return row.stopped_at is None

    def row_context(self, request: HttpRequest, row: Worker) -> dict[str, Any]:
        return {"worker_status": self.status(row)}

    def tab_context(self, request: HttpRequest, row: Worker, tab: str) -> dict[str, Any]:
        narrow = desk_of(request).narrow
        jobs = Job.objects.defer("input", "output", "checkpoint")
        running = narrow(jobs.filter(lease_expires_at__isnull=False, worker_id=row.pk)).order_by("started_at")
        return {"running_jobs": list(running[:50])}
