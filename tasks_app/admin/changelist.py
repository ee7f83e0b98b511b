"""Lists that stay fast at any size: keyset pages, bounded counts, and a bounded search where no index helps.

Rows are ordered by id, newest first (ids are UUIDv7, so that is the order they were made in). A page is found by the id
before it, never by an offset. A filter that no index serves looks only at the newest `WINDOW` rows from there on and
says so; "Look further back" moves the window.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property
from unfold.views import ChangeList

from tasks_app.domain import jsonsafe
from tasks_app.templatetags.desk import crumb

WINDOW = 50_000
COUNT_MAX = 1_000
AFTER, BEFORE = "after", "before"


class KeysetPaginator(Paginator):
    """Holds one page that is already known; it never counts."""

    template_name = "admin/desk/pager.html"

    @cached_property
    def count(self) -> int:
        return len(self.object_list)


def _cursor(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


class DeskChangeList(ChangeList):
    """Says what the page holds instead of asking to select something."""

    result_list: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = crumb(self.opts.verbose_name_plural)


class KeysetChangeList(DeskChangeList):
    """``after``/``before`` in the query string hold the id next to the page that is asked for.

    ``model_admin`` is a `tasks_app.admin.base.RuntimeAdmin`. Parameters no filter of it reads are ignored.
    """

    filter_params: dict[str, list[str]]
    older_url = ""
    newer_url = ""
    further_url = ""
    count_text = ""
    cut_at_text = ""

    def get_queryset(self, request: HttpRequest, exclude_parameters: list[str | None] | None = None) -> QuerySet:
        known = self.model_admin.known_parameters()
        self.filter_params = {
            key: [jsonsafe.clean_text(item)[:300] for item in items]
            for key, items in self.filter_params.items()
            if key in known
        }
        return super().get_queryset(request, exclude_parameters)

    def get_ordering(self, request: HttpRequest, queryset: QuerySet) -> list[str]:
        return ["-pk"]

    def get_ordering_field_columns(self) -> dict[int, str]:
        return {}

    def get_results(self, request: HttpRequest) -> None:
        after, before = _cursor(request.GET.get(AFTER)), _cursor(request.GET.get(BEFORE))
        used = {key for key, items in self.filter_params.items() if any(items)}
        windowed = not self.model_admin.is_indexed(request, used)
        rows, floor = self.queryset, None
        if windowed and before is None:
            floor = self._floor(request, after)
            rows = rows if floor is None else rows.filter(pk__gte=floor)
        self.cut_at_text = f"{WINDOW:,}" if floor is not None else ""
        found, has_newer = self._page(rows, after, before)
        shown = found[: self.list_per_page]
        self._link(shown, len(found) > len(shown) or before is not None, has_newer, floor)
        if not (windowed or after or before):
            self.count_text = self._bounded_count(rows)
        self.result_list = self.model_admin.prepare_rows(request, shown)
        self.result_count = self.full_result_count = len(shown)
        self.show_full_result_count = self.show_all = self.can_show_all = self.multi_page = False
        self.show_admin_actions = True
        self.paginator = KeysetPaginator(self.result_list, self.list_per_page)
        self.page_num = 1

    def _floor(self, request: HttpRequest, after: UUID | None) -> UUID | None:
        """The oldest id a search from here may look at; None when fewer than `WINDOW` rows are left."""
        rows = self.model_admin.window_rows(request)
        if after:
            rows = rows.filter(pk__lt=after)
        return rows.order_by("-pk").values_list("pk", flat=True)[WINDOW : WINDOW + 1].first()

    def _page(self, rows: QuerySet, after: UUID | None, before: UUID | None) -> tuple[list[Any], bool]:
        """One page and, when there is more after it, one row of the next; and whether there are newer rows."""
        if before:
            newer = list(rows.filter(pk__gt=before).order_by("pk")[: self.list_per_page + 1])
            return newer[: self.list_per_page][::-1], len(newer) > self.list_per_page
        if after:
            rows = rows.filter(pk__lt=after)
        return list(rows.order_by("-pk")[: self.list_per_page + 1]), after is not None

    def _link(self, shown: list[Any], has_older: bool, has_newer: bool, floor: UUID | None) -> None:
        if shown and has_older:
            self.older_url = self.get_query_string({AFTER: shown[-1].pk})
        elif floor is not None:
            self.further_url = self.get_query_string({AFTER: floor})
        if has_newer:
            self.newer_url = self.get_query_string({BEFORE: shown[0].pk} if shown else {})

    def _bounded_count(self, rows: QuerySet) -> str:
        seen = rows.order_by().values("pk")[: COUNT_MAX + 1].count()
        return f"{seen:,}" if seen <= COUNT_MAX else f"more than {COUNT_MAX:,}"


class PlainChangeList(DeskChangeList):
    """An ordinary list, for tables of a few rows; `prepare_rows` attaches what its columns need."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.full_result_count = self.result_count
        self.result_list = self.model_admin.prepare_rows(request, list(self.result_list))
