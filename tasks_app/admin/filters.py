"""Filters of the desk's lists. Each reads parameters of its own name and never fails on what it is given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.dateparse import parse_date, parse_datetime
from unfold.contrib.filters.admin import DropdownFilter, RangeDateFilter, TextFilter

from tasks_app.actions import registry
from tasks_app.admin.principal import desk_of
from tasks_app.domain import ids
from tasks_app.domain.errors import NotFound
from tasks_app.domain.states import EXECUTION_STOPPED, DeadLetterStatus, ExecutionStatus, JobStatus, TaskStatus
from tasks_app.domain.waits import ApprovalState
from tasks_app.models import Project, Queue
from tasks_app.queries import executions
from tasks_app.queries.dashboard import first_id_at
from tasks_app.queries.fields import status_is_one_of

Choices = list[tuple[str, str]]


def id_of(noun: str, text: str) -> UUID | None:
    """The UUID behind a TypeID or a plain UUID, or None."""
    try:
        return ids.from_text(noun, text)
    except NotFound:
        pass
    try:
        return UUID(text)
    except ValueError:
        return None


class _Choice(DropdownFilter):
    """A dropdown over ``field``; a value that is not among its choices selects nothing."""

    field: str

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = self.value()
        return queryset.filter(**{self.field: value}) if value else queryset


class _Status(DropdownFilter):
    title = parameter_name = "status"
    statuses: type[StrEnum]

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        return [(s, s.capitalize()) for s in self.statuses]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = self.value()
        if not value:
            return queryset
        if value not in set(self.statuses):
            return queryset.none()
        return self.narrow(queryset, self.statuses(value))

    def narrow(self, queryset: QuerySet, status: StrEnum) -> QuerySet:
        # Written into the SQL, not passed: only then does the planner know that a partial index fits.
        return queryset.filter(status_is_one_of("status", [status]))


class TaskStatusFilter(_Status):
    statuses = TaskStatus


class JobStatusFilter(_Status):
    statuses = JobStatus

    def narrow(self, queryset: QuerySet, status: StrEnum) -> QuerySet:
        found = super().narrow(queryset, status)
        # The index of running jobs is declared on their lease.
        return found.filter(lease_expires_at__isnull=False) if status == JobStatus.RUNNING else found


class ExecutionStatusFilter(_Status):
    statuses = ExecutionStatus

    def narrow(self, queryset: QuerySet, status: StrEnum) -> QuerySet:
        if status in EXECUTION_STOPPED:
            return queryset.filter(executions.stopped([ExecutionStatus(status)]))
        return super().narrow(queryset, status)


class DeadLetterStatusFilter(_Status):
    statuses = DeadLetterStatus


class ApprovalStatusFilter(_Choice):
    title = parameter_name = field = "status"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        return [(s, s.capitalize()) for s in ApprovalState]


class TypeFilter(_Choice):
    title = parameter_name = field = "type"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        return [(a.id, a.id) for a in registry.all_actions()] or [("core.echo", "core.echo")]


class ActionFilter(TypeFilter):
    title = parameter_name = "action"
    field = "action_id"


class EventTypeFilter(TextFilter):
    title = parameter_name = "type"

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = (self.value() or "").strip()
        if not value:
            return queryset
        return queryset.filter(type__startswith=value[:-1]) if value.endswith("*") else queryset.filter(type=value)


class VerbFilter(TextFilter):
    title = parameter_name = "verb"

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = (self.value() or "").strip()
        return queryset.filter(verb__startswith=value.removesuffix("*")) if value else queryset


class ParentFilter(TextFilter):
    title = parameter_name = "parent"

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = (self.value() or "").strip()
        return queryset.filter(parent_task_id=id_of("task", value)) if value else queryset


class CorrelationFilter(TextFilter):
    title = parameter_name = "correlation"

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = (self.value() or "").strip()
        return queryset.filter(correlation_id=value) if value else queryset


class CodeFilter(TextFilter):
    title = parameter_name = "code"

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = (self.value() or "").strip()
        return queryset.filter(code=value) if value else queryset


class FingerprintFilter(TextFilter):
    title = parameter_name = "fingerprint"

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = (self.value() or "").strip()
        return queryset.filter(fingerprint=value) if value else queryset


class QueueFilter(_Choice):
    title = parameter_name = "queue"
    field = "queue_id"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        return [(name, name) for name in Queue.objects.order_by("name").values_list("name", flat=True)[:100]]


class ProjectFilter(DropdownFilter):
    title = parameter_name = "project"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        rows = desk_of(request).narrow(Project.objects.order_by("name"))[:200]
        return [(row.public_id, row.name) for row in rows]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = self.value()
        return queryset.filter(project_id=id_of("project", value)) if value else queryset


class OrganizationFilter(DropdownFilter):
    """Only there for people who see more than one organisation."""

    title = "organisation"
    parameter_name = "organization"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        names = desk_of(request).names
        return [(ids.to_text("organization", key), name) for key, name in names.items()] if len(names) > 1 else []

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        value = self.value()
        return queryset.filter(organization_id=id_of("organization", value)) if value else queryset


class PriorityFilter(DropdownFilter):
    title = parameter_name = "priority"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        return [("high", "High (above 0)"), ("normal", "Normal (0)"), ("low", "Low (below 0)")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        chosen = {"high": Q(priority__gt=0), "normal": Q(priority=0), "low": Q(priority__lt=0)}.get(self.value() or "")
        return queryset.filter(chosen) if chosen else queryset


def moment_of(text: str | None) -> datetime | None:
    """A day or an instant as an aware datetime (UTC); None for anything else."""
    try:
        parsed = parse_datetime(text or "") or None
        day = parse_date(text or "")
    except ValueError:
        return None
    if day is not None:
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    return parsed.replace(tzinfo=UTC) if parsed and parsed.tzinfo is None else parsed


class CreatedFilter(RangeDateFilter):
    """Days from and to (both included), answered from the id alone: ids are in the order of creation."""

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        start = moment_of(self.used_parameters.get(f"{self.parameter_name}_from"))
        end = moment_of(self.used_parameters.get(f"{self.parameter_name}_to"))
        if start and start.year > 1970:
            queryset = queryset.filter(pk__gte=first_id_at(start))
        if end and 1970 < end.year < 9000:
            queryset = queryset.filter(pk__lt=first_id_at(end + timedelta(days=1)))
        return queryset
