"""Setup: organisations, who belongs to them, projects and API keys."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display as column
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminSplitDateTimeWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from tasks_app.admin.base import DeskAdmin, Tab
from tasks_app.admin.changelist import PlainChangeList
from tasks_app.admin.filters import OrganizationFilter
from tasks_app.admin.principal import desk_of, may, principal_of
from tasks_app.admin.verbs import Verb, VerbsAdmin
from tasks_app.domain import clock, jsonsafe
from tasks_app.domain.errors import DevosError
from tasks_app.domain.principal import ROLES, Principal
from tasks_app.models import ApiKey, Membership, Organization, Project
from tasks_app.queries import actors, costs, project_dashboard
from tasks_app.services import api_keys, audit, projects
from tasks_app.templatetags import desk as display


class StorableForm(forms.ModelForm):
    """A form whose texts PostgreSQL takes."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        return {key: jsonsafe.clean_text(item) if isinstance(item, str) else item for key, item in cleaned.items()}


class AuditedAdmin(DeskAdmin):
    """Rows that are changed through a form here; every change is written to the audit with it."""

    form = StorableForm
    audited: tuple[str, ...] = ()

    def organization_of(self, obj: Model) -> Any:
        return getattr(obj, "organization_id", None)

    def _said(self, obj: Any) -> dict[str, Any]:
        return {name: jsonsafe.clean(getattr(obj, name)) for name in self.audited}

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        before = self._said(self.model._default_manager.get(pk=obj.pk)) if change else None
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            verb = f"{obj.noun}.{'update' if change else 'create'}"
            principal = principal_of(request, self.organization_of(obj))
            audit.record(principal, verb, obj.noun, obj.public_id, before=before, after=self._said(obj))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        principal = principal_of(request, self.organization_of(obj))
        with transaction.atomic():
            audit.record(principal, f"{obj.noun}.delete", obj.noun, obj.public_id, before=self._said(obj))
            super().delete_model(request, obj)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        # One at a time: the bulk delete of the admin would go past the audit.
        return {}

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:
        """The audit has it."""

    log_change = log_deletion = log_addition


@admin.register(Organization)
class OrganizationAdmin(AuditedAdmin):
    list_display = ("name", "slug", "created_at")
    search_fields = ("name", "slug")
    ordering = ("name",)
    fields = ("name", "slug")
    organization_field = "id"
    audited = ("name", "slug")

    def organization_of(self, obj: Model) -> Any:
        return obj.pk

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_superuser)


@admin.register(Membership)
class MembershipAdmin(AuditedAdmin):
    list_display = ("user", "organization", "role", "created_at")
    list_filter = (OrganizationFilter,)
    list_select_related = ("user", "organization")
    search_fields = ("user__username",)
    ordering = ("organization__name", "user__username")
    fields = ("organization", "user", "role")
    raw_id_fields = ("user",)
    audited = ("organization_id", "user_id", "role")

    def _is_admin(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Admins of the organisation, and superusers."""
        desk = desk_of(request)
        if request.user.is_superuser:
            return True
        if obj is not None:
            return desk.roles.get(self.organization_of(obj)) == "admin"
        return "admin" in desk.roles.values()

    has_add_permission = has_change_permission = has_delete_permission = _is_admin

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "organization":
            desk = desk_of(request)
            mine = [key for key, role in desk.roles.items() if role == "admin"]
            kwargs["queryset"] = Organization.objects.filter(pk__in=mine).order_by("name")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return ("organization", "user") if obj else ()


class ProjectForm(StorableForm):
    """Refusals of the service show on the form."""

    class Meta:
        model = Project
        fields = ("name", "slug", "description")


@admin.register(Project)
class ProjectAdmin(DeskAdmin):
    form = ProjectForm
    list_display = ("name", "slug", "organization", "tasks_link", "created_at")
    list_filter = (OrganizationFilter,)
    list_select_related = ("organization",)
    search_fields = ("name", "slug")
    ordering = ("name",)
    change_form_before_template = "admin/desk/project_numbers.html"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, object_id)
        numbers = project_dashboard.of(row, *costs.span(None, None)) if isinstance(row, Project) else None
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), "numbers": numbers})

    @column(description="Tasks")
    def tasks_link(self, project: Project) -> SafeString:
        address = display.list_address("task", f"project={project.public_id}")
        return format_html('<a class="d-link" href="{}">Show tasks</a>', address)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return may(request, "projects.write")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return may(request, "projects.write", getattr(obj, "organization_id", None))

    def save_model(self, request: HttpRequest, obj: Project, form: Any, change: bool) -> None:
        given = {name: form.cleaned_data[name] for name in ("name", "slug", "description")}
        if change:
            projects.update(principal_of(request, obj.organization_id), obj.pk, **given)
        else:
            made = projects.create(principal_of(request), **given)
            obj.pk, obj.organization_id = made.pk, made.organization_id

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except DevosError as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(request.get_full_path())

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:
        """The audit has it."""

    log_change = log_deletion = log_addition

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        return {}


class ApiKeyForm(forms.Form):
    name = forms.CharField(max_length=200, widget=UnfoldAdminTextInputWidget, help_text="Who or what will use it.")
    role = forms.ChoiceField(
        choices=[(role, role.capitalize()) for role in ROLES], initial="operator", widget=UnfoldAdminSelectWidget
    )
    scopes = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="One permission pattern a line, such as tasks.* or seo.scan. Empty: all the role may do.",
    )
    expires_at = forms.SplitDateTimeField(
        label="Expires (UTC)", required=False, widget=UnfoldAdminSplitDateTimeWidget, help_text="Empty: never."
    )

    def clean_scopes(self) -> list[str]:
        return self.cleaned_data["scopes"].split()


def _revoke(principal: Principal, row: ApiKey, given: dict[str, Any]) -> str:
    api_keys.revoke(principal, row.pk, reason=given["reason"])
    return f"The key {row.name} is revoked: it opens nothing any more."


@admin.register(ApiKey)
class ApiKeyAdmin(VerbsAdmin):
    noun = "api_key"
    list_display = ("what", "state", "role", "scope_text", "used", "expires", "created")
    list_display_links = ("what",)
    list_filter = (OrganizationFilter,)
    search_fields = ("id", "name")
    search_help_text = "Id, or part of the name or prefix"
    summary_template = "admin/desk/api_key_summary.html"
    tabs = (Tab("overview", "Overview", "admin/desk/api_key_overview.html"),)
    verbs = (
        Verb(
            name="revoke",
            label="Revoke",
            icon="block",
            question="Revoke this key?",
            explanation="Whatever uses it is refused from now on. This cannot be undone.",
            permission="api_keys.write",
            run=_revoke,
            offered=lambda key: key.revoked_at is None,
            danger=True,
        ),
    )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return PlainChangeList

    ordering = ("-id",)

    @staticmethod
    def status(key: ApiKey) -> str:
        if key.revoked_at:
            return "revoked"
        return "expired" if key.expires_at and key.expires_at <= clock.now() else "active"

    @column(description="Key")
    def what(self, key: ApiKey) -> SafeString:
        return display.stacked(key.name, f"devos_{key.prefix}_…")

    @column(description="State")
    def state(self, key: ApiKey) -> SafeString:
        return display.badge(self.status(key))

    @column(description="Scopes")
    def scope_text(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)[:80] or "all of the role"

    @column(description="Last used")
    def used(self, key: ApiKey) -> SafeString | str:
        return display.ago(key.last_used_at) if key.last_used_at else "never"

    @column(description="Expires")
    def expires(self, key: ApiKey) -> SafeString | str:
        return display.ago(key.expires_at) if key.expires_at else "never"

    @column(description="Made")
    def created(self, key: ApiKey) -> SafeString | str:
        return display.ago(key.created_at)

    def search(self, rows: QuerySet, term: str) -> QuerySet:
        return rows.filter(name__icontains=term) | rows.filter(prefix__startswith=term.removeprefix("devos_")[:12])

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return may(request, "api_keys.write")

    def row_context(self, request: HttpRequest, row: ApiKey) -> dict[str, Any]:
        return {
            "buttons": self.buttons(request, row),
            "key_status": self.status(row),
            "who": actors.name_of(row.created_by_type, row.created_by_id),
        }

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The form, and after it the secret: shown in that one answer and nowhere else."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = ApiKeyForm(request.POST if request.method == "POST" else None)
        made: tuple[ApiKey, str] | None = None
        error: DevosError | None = None
        if request.method == "POST" and form.is_valid():
            given = form.cleaned_data
            try:
                made = api_keys.create(
                    principal_of(request), given["name"], given["role"], given["scopes"], given["expires_at"]
                )
            except DevosError as refused:
                error = refused
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "New API key",
            "form": form,
            "error": error,
            "key": made[0] if made else None,
            "secret": made[1] if made else "",
            "media": form.media,
        }
        status = error.status if error else 400 if form.is_bound and not form.is_valid() else 200
        headers = {"Cache-Control": "no-store"}
        return TemplateResponse(request, "admin/desk/api_key_add.html", context, status=status, headers=headers)
