"""The first page of the desk, its live data, and the badges in the sidebar."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.template.loader import render_to_string
from django.urls import URLPattern, path

from tasks_app.admin.principal import desk_of
from tasks_app.queries import cached
from tasks_app.queries import dashboard as queries

# Everybody who looks shares one reading of the numbers for this long.
KEPT_S = 2
BADGES_KEPT_S = 5
MINUTES_KEPT_S = 3_700
TABLES = ("queues", "workers", "failures", "slowest")


def _scope(request: HttpRequest) -> queries.Scope:
    return queries.Scope(desk_of(request).organization_ids)


def _key(request: HttpRequest, name: str) -> str:
    ids = desk_of(request).organization_ids
    return f"desk-{name}-{'all' if ids is None else '-'.join(sorted(str(i) for i in ids))[:180]}"


def _snapshot(request: HttpRequest) -> dict[str, Any]:
    """The numbers; minutes too busy to count again are filled in from when they were counted."""
    found = queries.snapshot(_scope(request))
    known: dict[Any, dict[str, Any]] = cached.get_or_make(_key(request, "minutes"), MINUTES_KEPT_S, dict)
    for row in found["per_minute"]:
        earlier = known.get(row["minute"])
        if row["minute"] < found["complete_from"] and earlier:
            row.update(earlier)
    hour = {row["minute"]: row for row in found["per_minute"] if row["minute"] >= found["complete_from"]}
    cached.put(_key(request, "minutes"), {**_young(known, found["per_minute"][0]["minute"]), **hour}, MINUTES_KEPT_S)
    found["sampled"] = any(
        row["minute"] < found["complete_from"] and row["minute"] not in known for row in found["per_minute"]
    )
    return found


def _young(minutes: dict[Any, dict[str, Any]], first: Any) -> dict[Any, dict[str, Any]]:
    return {minute: row for minute, row in minutes.items() if minute >= first}


def _numbers(request: HttpRequest) -> dict[str, Any]:
    found = cached.get_or_make(_key(request, "dashboard"), KEPT_S, lambda: _snapshot(request))
    hour = found["per_minute"]
    done = sum(row["completed"] for row in hour)
    failed = sum(row["failed"] for row in hour)
    oldest = max((q["oldest_s"] for q in found["queues"] if q["oldest_s"] is not None), default=None)
    oldest_queue = next((q["name"] for q in found["queues"] if oldest is not None and q["oldest_s"] == oldest), "")
    return {
        **found,
        "done": done,
        "failed": failed,
        "failure_rate": failed / (done + failed) * 100 if done + failed else 0.0,
        "oldest_s": oldest,
        "oldest_queue": oldest_queue,
        "depth": sum(q["depth"] for q in found["queues"]),
        "running": sum(q["running"] for q in found["queues"]),
        "slots": sum(w["concurrency"] for w in found["workers"]),
    }


def _series(numbers: dict[str, Any]) -> dict[str, list[Any]]:
    return {
        "labels": [row["minute"].strftime("%H:%M") for row in numbers["per_minute"]],
        "completed": [row["completed"] for row in numbers["per_minute"]],
        "failed": [row["failed"] for row in numbers["per_minute"]],
    }


def index_context(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """UNFOLD's DASHBOARD_CALLBACK."""
    context["title"] = "Dashboard"
    if desk_of(request).roles:
        numbers = _numbers(request)
        context.update(numbers=numbers, series=_series(numbers), is_fullwidth="1")
    return context


def live(request: HttpRequest) -> JsonResponse:
    """What changes on the dashboard: ``{"regions": {name: html}, "series": {...}, "live": true}``."""
    if not desk_of(request).roles:
        return JsonResponse({"regions": {}, "live": False}, status=403)
    numbers = _numbers(request)
    context = {"numbers": numbers}
    regions = {name: render_to_string(f"admin/desk/dashboard_{name}.html", context) for name in ("tiles", *TABLES)}
    answer = {"regions": regions, "series": _series(numbers), "live": True}
    return JsonResponse(answer, headers={"Cache-Control": "no-store"})


def urls(admin_site: Any) -> list[URLPattern]:
    """Addresses the desk adds to the admin site."""
    return [path("live/", admin_site.admin_view(live), name="desk_live")]


def _badges(request: HttpRequest) -> dict[str, int]:
    if not desk_of(request).roles:
        return {"failed": 0, "dead_letters": 0, "approvals": 0}
    return cached.get_or_make(_key(request, "badges"), BADGES_KEPT_S, lambda: queries.open_numbers(_scope(request)))


def _badge(count: int) -> str:
    return "" if not count else f"{count}" if count < 1_000 else "1k+" if count < queries.OPEN_MAX else "10k+"


def failed_badge(request: HttpRequest) -> str:
    """Executions that failed within the hour."""
    return _badge(_badges(request)["failed"])


def approval_badge(request: HttpRequest) -> str:
    """Open approvals."""
    return _badge(_badges(request)["approvals"])


def dead_letter_badge(request: HttpRequest) -> str:
    """Open dead letters."""
    return _badge(_badges(request)["dead_letters"])
