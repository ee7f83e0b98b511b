"""The command palette: jump to a task, job, execution or other row by its id, or to tasks by correlation or name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from unfold.dataclasses import SearchResult

from tasks_app.admin.filters import id_of
from tasks_app.admin.principal import desk_of
from tasks_app.domain import ids, jsonsafe
from tasks_app.models import ApiKey, Approval, DeadLetterJob, Execution, Job, Project, Task
from tasks_app.templatetags import desk as display

FOUND_MAX = 10
_BY_ID: dict[str, tuple[type[Model], str, str]] = {
    "task": (Task, "Task", "task_alt"),
    "job": (Job, "Job", "work"),
    "execution": (Execution, "Execution", "play_circle"),
    "dead_letter": (DeadLetterJob, "Dead letter", "report"),
    "approval": (Approval, "Approval", "approval"),
    "api_key": (ApiKey, "API key", "key"),
    "project": (Project, "Project", "folder"),
}


def find(request: HttpRequest, term: str) -> list[SearchResult]:
    """UNFOLD's COMMAND search_callback. ``term`` is lower case, which is how ids are written."""
    term = jsonsafe.clean_text(term.strip())[:200]
    if not term:
        return []
    return _by_id(request, term) or _by_text(request, term)


def _by_id(request: HttpRequest, term: str) -> list[SearchResult]:
    results = []
    prefix = term.rpartition("_")[0]
    for noun, (model, title, icon) in _BY_ID.items():
        if prefix and prefix != ids.PREFIXES[noun]:
            continue
        key = id_of(noun, term)
        if key and desk_of(request).narrow(model._default_manager.filter(pk=key)).exists():
            results.append(SearchResult(ids.to_text(noun, key), title, display.page_address(noun, key), icon))
    return results


def _by_text(request: HttpRequest, term: str) -> list[SearchResult]:
    related = desk_of(request).narrow(Task.objects.filter(correlation_id=term)).order_by("-id")
    tasks = list(related.only("id", "name", "type", "status")[:FOUND_MAX])
    results = [
        SearchResult(task.name or task.type, f"{task.status} task", display.page_address("task", task.pk), "task_alt")
        for task in tasks
    ]
    address = display.list_address("task", urlencode({"q": term}))
    return [*results, SearchResult(f"Tasks with “{term}”", "search", address, "search")]


def checked(search: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The search view of the admin site, safe against page numbers and texts it does not expect."""

    def view(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        given = request.GET.copy()
        # At most FOUND_MAX rows and a few lists are ever found: there is no second page.
        given["page"] = "1"
        if "s" in given:
            given["s"] = jsonsafe.clean_text(str(given["s"]))[:200]
        request.GET = given  # type: ignore[assignment]
        return search(request, extra_context)

    return view
