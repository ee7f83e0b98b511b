"""The record: events and the audit. Both are written once; here they are read."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.decorators import display as column

from tasks_app.admin.base import RuntimeAdmin, Tab
from tasks_app.admin.filters import CreatedFilter, EventTypeFilter, OrganizationFilter, VerbFilter, id_of
from tasks_app.admin.principal import desk_of, may
from tasks_app.domain import ids
from tasks_app.models import AuditEntry, Event, Organization
from tasks_app.queries import actors
from tasks_app.templatetags import desk as display

_NOUNS = {prefix: noun for noun, prefix in ids.PREFIXES.items()}


def _organization(key: UUID | None) -> Organization | None:
    return Organization.objects.filter(pk=key).first() if key else None


@admin.register(Event)
class EventAdmin(RuntimeAdmin):
    noun = "event"
    list_display = ("type_column", "about", "actor", "correlation_id", "at")
    list_display_links = ("type_column",)
    list_filter = (EventTypeFilter, ("timestamp", CreatedFilter), OrganizationFilter)
    list_select_related = ()
    big_fields = ("data", "metadata")
    search_fields = ("id", "type")
    search_help_text = "Id of an event or of a task, or the whole type"
    # The table has no index by organisation: only an unnarrowed list is in order by itself.
    indexed = ()
    tabs = (Tab("overview", "Overview", "admin/desk/event_overview.html"),)

    def is_indexed(self, request: HttpRequest, used: set[str]) -> bool:
        if used == {"q"} and (self.is_exact_search(request) or id_of("task", request.GET.get("q", "").strip())):
            return True
        return used <= {"timestamp_from", "timestamp_to"} and desk_of(request).organization_ids is None

    def window_rows(self, request: HttpRequest) -> QuerySet:
        return Event.objects.all()

    @column(description="Event")
    def type_column(self, event: Event) -> SafeString:
        return display.stacked(event.type, event.public_id)

    @column(description="About")
    def about(self, event: Event) -> SafeString | str:
        for noun, value in (("task", event.task_id), ("job", event.job_id), ("execution", event.execution_id)):
            if value:
                return display.link(noun, value)
        return f"{event.resource_type} {event.resource_id}" if event.resource_type else display.DASH

    @column(description="By")
    def actor(self, event: Event) -> str:
        return actors.name_of(event.actor_type, event.actor_id)

    @column(description="When")
    def at(self, event: Event) -> SafeString | str:
        return display.exact(event.timestamp)

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, search_term: str) -> tuple[QuerySet, bool]:
        task = id_of("task", search_term.strip()) if search_term.strip().startswith("task_") else None
        if task:
            return queryset.filter(task_id=task), False
        return super().get_search_results(request, queryset, search_term)

    def search(self, rows: QuerySet, term: str) -> QuerySet:
        return rows.filter(Q(type=term) | Q(correlation_id=term))

    def page_title(self, row: Event) -> str:
        return row.type

    def row_context(self, request: HttpRequest, row: Event) -> dict[str, Any]:
        return {
            "who": actors.name_of(row.actor_type, row.actor_id),
            "organization": _organization(row.organization_id),
        }


@admin.register(AuditEntry)
class AuditAdmin(RuntimeAdmin):
    noun = "audit"
    list_display = ("verb_column", "object_column", "actor", "reason_column", "at")
    list_display_links = ("verb_column",)
    list_filter = (VerbFilter, ("timestamp", CreatedFilter), OrganizationFilter)
    list_select_related = ()
    big_fields = ("before", "after")
    search_fields = ("id", "object_id")
    search_help_text = "Id of an entry, or the whole id of what it is about"
    tabs = (Tab("overview", "Overview", "admin/desk/audit_overview.html"),)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj) and may(request, "audit.read")

    @column(description="Deed")
    def verb_column(self, entry: AuditEntry) -> SafeString:
        return display.stacked(entry.verb, entry.public_id)

    @column(description="On")
    def object_column(self, entry: AuditEntry) -> str:
        return f"{entry.object_type} {entry.object_id}"

    @column(description="By")
    def actor(self, entry: AuditEntry) -> str:
        return actors.name_of(entry.actor_type, entry.actor_id)

    @column(description="Reason")
    def reason_column(self, entry: AuditEntry) -> str:
        return entry.reason or display.DASH

    @column(description="When")
    def at(self, entry: AuditEntry) -> SafeString | str:
        return display.exact(entry.timestamp)

    def search(self, rows: QuerySet, term: str) -> QuerySet:
        noun = _NOUNS.get(term.rpartition("_")[0])
        return rows.filter(object_type=noun, object_id=term) if noun else rows.filter(object_id=term)

    def is_exact_search(self, request: HttpRequest) -> bool:
        return super().is_exact_search(request) or request.GET.get("q", "").strip().rpartition("_")[0] in _NOUNS

    def page_title(self, row: AuditEntry) -> str:
        return row.verb

    def row_context(self, request: HttpRequest, row: AuditEntry) -> dict[str, Any]:
        return {
            "who": actors.name_of(row.actor_type, row.actor_id),
            "organization": _organization(row.organization_id),
        }
