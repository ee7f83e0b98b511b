"""The dead-letter desk: groups on top, letters by status, and verbs for one, a selection and all that match."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied as Forbidden
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from pydantic import ValidationError
from unfold.decorators import display as column

from tasks_app.admin import history
from tasks_app.admin.base import Tab
from tasks_app.admin.dead_letter_verbs import VERBS, AgainForm, criteria_of, subjects_of
from tasks_app.admin.filters import (
    ActionFilter,
    CodeFilter,
    CreatedFilter,
    DeadLetterStatusFilter,
    FingerprintFilter,
    OrganizationFilter,
    id_of,
)
from tasks_app.admin.principal import desk_of, may, principal_of
from tasks_app.admin.verbs import Verb, VerbsAdmin
from tasks_app.domain.dead_letters import RUNS_AGAIN
from tasks_app.domain.errors import DevosError, InvalidInput, PermissionDenied
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import DeadLetterStatus
from tasks_app.models import DeadLetterJob, Execution
from tasks_app.queries import dead_letters as queries
from tasks_app.queries.dead_letters import Group, GroupFilter
from tasks_app.queries.paging import LIMIT_MAX
from tasks_app.services import dead_letters as services
from tasks_app.services.dead_letters import BulkSpec
from tasks_app.templatetags import desk as display

GROUPS_SHOWN = 8


@admin.register(DeadLetterJob)
class DeadLetterAdmin(VerbsAdmin):
    noun = "dead_letter"
    list_display = ("what", "status_label", "error_line", "created", "decided")
    list_display_links = ("what",)
    list_filter = (
        DeadLetterStatusFilter,
        ActionFilter,
        CodeFilter,
        FingerprintFilter,
        ("created_at", CreatedFilter),
        OrganizationFilter,
    )
    list_select_related = ("organization",)
    list_before_template = "admin/desk/dead_letter_groups.html"
    search_fields = ("id", "action_id")
    search_help_text = "Id, fingerprint, or part of the action"
    indexed_statuses = frozenset(DeadLetterStatus)
    verbs = VERBS
    bulk = ("retry", "replay", "discard", "cancel")
    summary_template = "admin/desk/dead_letter_summary.html"
    tabs = (
        Tab("error", "Error"),
        Tab("logs", "Logs"),
        Tab("input", "Input", "admin/desk/execution_input.html"),
    )

    # -- list

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

    def is_indexed(self, request: HttpRequest, used: set[str]) -> bool:
        # Each of these has an index that begins with the organisation.
        narrowing = {name for name in used if not name.endswith(("_from", "_to"))} - {"organization", "status"}
        one_organization = "organization" in used or len(desk_of(request).organization_ids or ()) == 1
        found = one_organization and len(narrowing) == 1 and narrowing <= {"action", "code", "fingerprint"}
        return found or super().is_indexed(request, used)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        shown = request.GET.get("status", DeadLetterStatus.OPEN) in {"", DeadLetterStatus.OPEN}
        wanted = shown and request.method == "GET" and self._organization_id(request) in desk_of(request).roles
        groups, more = self._groups(request) if wanted else ([], False)
        context = {"groups": groups, "more_groups": more, "all_verbs": self._all_verbs(request) if wanted else []}
        if organization := request.GET.get("organization"):
            context["same_organization"] = f"&organization={organization}"
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def _groups(self, request: HttpRequest) -> tuple[list[Group], bool]:
        """The largest groups of open letters, and whether there are more."""
        page = queries.groups(self._principal(request), GroupFilter(limit=LIMIT_MAX))
        largest = sorted(page.rows, key=lambda group: (-group.count.value, group.fingerprint))
        return largest[:GROUPS_SHOWN], len(largest) > GROUPS_SHOWN or page.next is not None

    def _all_verbs(self, request: HttpRequest) -> list[dict[str, Any]]:
        """Links to the verbs on all that match what the list shows now; the template adds a group to the address."""
        allowed = may(request, "dead_letters.write", self._organization_id(request))
        kept = request.GET.copy()
        for name in ("after", "before", "status", "p"):
            kept.pop(name, None)
        query = f"?{kept.urlencode()}" if kept else ""
        return [{"verb": verb, "url": self._all_url(verb), "query": query} for verb in self.verbs if allowed]

    def _all_url(self, verb: Verb) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_all", args=[verb.name])

    # -- all that match

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_all"
        return [path("all/<slug:verb>/", self.admin_site.admin_view(self.all_view), name=name), *super().get_urls()]

    def _organization_id(self, request: HttpRequest) -> Any:
        """The organisation the list is narrowed to, else the user's first; None for one that cannot be."""
        given = request.GET.get("organization", "")
        return id_of("organization", given) if given else desk_of(request).default_id

    def _principal(self, request: HttpRequest) -> Principal:
        if self._organization_id(request) not in desk_of(request).roles:
            raise PermissionDenied("You do not belong to this organisation.")
        return principal_of(request, self._organization_id(request))

    def all_view(self, request: HttpRequest, verb: str) -> HttpResponse:
        """Count first, ask, and then leave it to a task."""
        chosen = self.verb(verb)
        back = display.list_address("dead_letter", request.GET.urlencode())
        form_class = AgainForm if chosen.name in RUNS_AGAIN else chosen.bulk_form_class
        form = form_class(request.POST if request.method == "POST" else None)
        try:
            principal, meant = self._principal(request), criteria_of(request.GET)
            # The reason stands in for one that is asked for below.
            counted = services.preview(principal, _spec(chosen, meant, {"reason": "preview"}))
            if form.is_bound and form.is_valid():
                _, made = services.bulk(principal, _spec(chosen, meant, form.cleaned_data))
                messages.success(request, "A task does it now. Cancel it to stop; what it has not reached stays open.")
                return HttpResponseRedirect(display.page_address("task", made.task_id))
        except PermissionDenied as error:
            raise Forbidden(error.message) from error
        except DevosError as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(back)
        count = f"{counted.value:,}" if counted.exact else f"More than {counted.value:,}"
        return self._confirm(request, chosen, form, None, [], back, subjects=subjects_of(meant, count))

    # -- page

    def page_queryset(self, request: HttpRequest) -> QuerySet:
        return super().page_queryset(request).select_related("job").defer("job__output", "job__checkpoint")

    def page_title(self, row: DeadLetterJob) -> str:
        return f"{row.action_id}: {row.error.get('code', 'ERROR') if isinstance(row.error, dict) else 'ERROR'}"

    def row_context(self, request: HttpRequest, row: DeadLetterJob) -> dict[str, Any]:
        return {"buttons": self.buttons(request, row)}

    def tab_context(self, request: HttpRequest, row: DeadLetterJob, tab: str) -> dict[str, Any]:
        if tab == "logs":
            return history.logs(list(Execution.objects.filter(pk=row.execution_id).defer("output", "input")))
        return {"effective_input": row.job.input} if tab == "input" else {}


def _spec(verb: Verb, meant: dict[str, Any], given: dict[str, Any]) -> BulkSpec:
    options = {name: value for name, value in given.items() if value not in (None, "")}
    try:
        return BulkSpec.model_validate({"verb": verb.name, **meant, **options})
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])
        raise InvalidInput(f"This filter cannot be used for a bulk. {said}") from error
