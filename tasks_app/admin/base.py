"""What the admins of the desk share: who may look, read-only rows, fast lists, and detail pages with tabs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.admin import ModelAdmin

from tasks_app.admin.changelist import DeskChangeList, KeysetChangeList
from tasks_app.admin.filters import OrganizationFilter, id_of
from tasks_app.admin.principal import desk_of, may

ROWS_A_PAGE = 25


class DeskAdmin(ModelAdmin):
    """Membership decides, not Django's per-model permissions: staff with a membership (or superusers) may look."""

    list_per_page = ROWS_A_PAGE
    list_max_show_all = ROWS_A_PAGE
    show_full_result_count = False
    list_filter_submit = True
    list_fullwidth = True
    compressed_fields = True
    list_disable_select_all = True
    show_facets = admin.ShowFacets.NEVER
    organization_field: ClassVar[str | None] = "organization_id"

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return DeskChangeList

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(desk_of(request).roles)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        rows = super().get_queryset(request)
        return desk_of(request).narrow(rows, self.organization_field) if self.organization_field else rows


class Tab:
    """One tab of a detail page: ``name`` is in the address, ``template`` shows what ``context`` returns."""

    def __init__(self, name: str, title: str, template: str = "") -> None:
        self.name, self.title = name, title
        self.template = template or f"admin/desk/tab_{name}.html"


class RuntimeAdmin(DeskAdmin):
    """Rows the runtime writes: a keyset list, and a read-only page with tabs that keeps itself up to date.

    A subclass names its ``noun`` (for TypeIDs), its ``tabs``, and answers `tab_context` for each. Verbs come in through
    `tasks_app.admin.verbs.VerbsAdmin`.
    """

    noun: ClassVar[str]
    tabs: ClassVar[Sequence[Tab]] = ()
    page_template = "admin/desk/page.html"
    summary_template = ""
    sortable_by = ()
    list_select_related: Any = ("organization",)
    big_fields: ClassVar[Sequence[str]] = ()
    # Parameter sets an index of the table answers on its own.
    indexed: ClassVar[Sequence[frozenset[str]]] = (frozenset(), frozenset({"organization"}))
    indexed_statuses: ClassVar[frozenset[str]] = frozenset()
    list_filter: Any = (OrganizationFilter,)

    # -- the list

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return KeysetChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        return super().get_queryset(request).defer(*self.big_fields)

    def window_rows(self, request: HttpRequest) -> QuerySet:
        """The rows a search may look through, without joins."""
        rows = self.model._default_manager.all()
        return desk_of(request).narrow(rows, self.organization_field) if self.organization_field else rows

    def known_parameters(self) -> frozenset[str]:
        names = {"q"}
        for item in self.list_filter:
            name = getattr(item, "parameter_name", None) if not isinstance(item, tuple) else None
            names |= {name} if name else {f"{item[0]}_from", f"{item[0]}_to"}
        return frozenset(names)

    def is_indexed(self, request: HttpRequest, used: set[str]) -> bool:
        """Whether an index finds the rows of these parameters in order, however rare they are.

        Bounds on the creation time are always ranges of the id. The index of an organisation serves only when exactly
        one is asked for.
        """
        narrowing = frozenset(name for name in used if not name.endswith(("_from", "_to")))
        if narrowing == {"q"} and self.is_exact_search(request):
            return True
        if not narrowing or narrowing in self.indexed:
            return True
        one_organization = "organization" in used or len(desk_of(request).organization_ids or ()) == 1
        indexed_status = request.GET.get("status") in self.indexed_statuses
        return one_organization and indexed_status and narrowing <= {"status", "organization"}

    def is_exact_search(self, request: HttpRequest) -> bool:
        """Whether the search box holds an id, which the primary key answers."""
        return id_of(self.noun, request.GET.get("q", "").strip()) is not None

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """A hook to attach what the columns need, for all rows of the page at once."""
        return rows

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, search_term: str) -> tuple[QuerySet, bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        found = id_of(self.noun, term)
        return (queryset.filter(pk=found) if found else self.search(queryset, term)), False

    def search(self, rows: QuerySet, term: str) -> QuerySet:
        return rows.none()

    # -- the page of one row

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_live"
        live = path("<path:object_id>/live/", self.admin_site.admin_view(self.live_view), name=name)
        return [live, *super().get_urls()]

    def find(self, request: HttpRequest, object_id: str) -> Any:
        """The row, by UUID or TypeID; 404 for anything else, also for a row of another organisation."""
        key = id_of(self.noun, object_id)
        row = self.page_queryset(request).filter(pk=key).first() if key else None
        if row is None:
            raise Http404(f"There is no {self.opts.verbose_name} {object_id[:80]!r} here.")
        return row

    def page_queryset(self, request: HttpRequest) -> QuerySet:
        rows = super().get_queryset(request)
        return rows.select_related(*self.list_select_related) if self.list_select_related else rows

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise Http404
        row = self.find(request, object_id)
        context = {**self.admin_site.each_context(request), **self.page_context(request, row), **(extra_context or {})}
        return TemplateResponse(request, self.page_template, context)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        raise Http404("The audit holds the history of runtime rows.")

    def live_view(self, request: HttpRequest, object_id: str) -> JsonResponse:
        """The regions of the page that change, as HTML; ``live`` is false once nothing more will."""
        row = self.find(request, object_id)
        context = self.page_context(request, row)
        regions = {"tab": render_to_string(context["tab"].template, context, request)}
        if self.summary_template:
            regions["summary"] = render_to_string(self.summary_template, context, request)
        return JsonResponse({"regions": regions, "live": self.is_live(row)}, headers={"Cache-Control": "no-store"})

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        wanted = request.GET.get("tab", "")
        tab = next((t for t in self.tabs if t.name == wanted), self.tabs[0])
        address = self.page_url(row)
        return {
            "opts": self.opts,
            "original": row,
            "row": row,
            "title": self.page_title(row),
            "tabs": self.tabs,
            "tab": tab,
            "page_url": address,
            "live_url": f"{address.removesuffix('change/')}live/?tab={tab.name}",
            "is_live": self.is_live(row),
            "summary_template": self.summary_template,
            "is_fullwidth": "1",
            **self.row_context(request, row),
            **self.tab_context(request, row, tab.name),
        }

    def page_url(self, row: Any) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[row.pk])

    def page_title(self, row: Any) -> str:
        return str(row)

    def is_live(self, row: Any) -> bool:
        """Whether the page should keep asking for news."""
        return False

    def row_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Context every tab and the summary share."""
        return {}

    def tab_context(self, request: HttpRequest, row: Any, tab: str) -> dict[str, Any]:
        return {}

    def may(self, request: HttpRequest, permission: str, organization_id: UUID | None = None) -> bool:
        return may(request, permission, organization_id)
