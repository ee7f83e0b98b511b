"""The looks and the navigation of the operator's desk (django-unfold). Imported by the settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse, reverse_lazy


def _list(model: str, app: str = "tasks_app") -> Any:
    return reverse_lazy(f"admin:{app}_{model}_changelist")


def _may_look(request: HttpRequest) -> bool:
    from tasks_app.admin.principal import desk_of

    return bool(desk_of(request).roles)


def _may_read_audit(request: HttpRequest) -> bool:
    from tasks_app.admin.principal import may

    return _may_look(request) and may(request, "audit.read")


def _is_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_superuser)


def _item(title: str, icon: str, link: Any, permission: Callable[[HttpRequest], bool] = _may_look) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": link, "permission": permission}


def _badge(item: dict[str, Any], callback: str, variant: str) -> dict[str, Any]:
    return {**item, "badge": callback, "badge_variant": variant}


def _status_tabs(model: str, statuses: list[str]) -> dict[str, Any]:
    """Tabs over a list: each is the list with a status."""

    def tab(status: str) -> dict[str, Any]:
        query = f"?status={status}" if status else ""
        return {
            "title": status.capitalize() or "All",
            "link": lambda request: reverse(f"admin:tasks_app_{model}_changelist") + query,
            "active": lambda request: request.GET.get("status", "") == status,
        }

    return {"models": [f"tasks_app.{model}"], "items": [tab(status) for status in ["", *statuses]]}


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "DevOS",
    "SITE_HEADER": "DevOS",
    "SITE_SUBHEADER": "Operator's desk",
    "SITE_SYMBOL": "conveyor_belt",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("devos/icon.svg")},
    ],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "DASHBOARD_CALLBACK": "tasks_app.admin.dashboard.index_context",
    "STYLES": [lambda request: static("devos/desk.css")],
    "SCRIPTS": [lambda request: static("devos/desk.js")],
    "BORDER_RADIUS": "8px",
    "COLORS": {
        "primary": {
            "50": "oklch(96.9% .016 252)",
            "100": "oklch(93.6% .032 253)",
            "200": "oklch(88.4% .06 255)",
            "300": "oklch(81% .105 257)",
            "400": "oklch(70.8% .16 260)",
            "500": "oklch(62% .2 262)",
            "600": "oklch(54.6% .22 264)",
            "700": "oklch(48.4% .21 266)",
            "800": "oklch(42% .17 267)",
            "900": "oklch(37% .13 268)",
            "950": "oklch(28% .09 269)",
        },
    },
    "COMMAND": {"search_models": False, "search_callback": "tasks_app.admin.search.find", "show_history": True},
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
        "navigation": [
            {"items": [_item("Dashboard", "dashboard", reverse_lazy("admin:index"), lambda request: True)]},
            {
                "title": "Work",
                "items": [
                    _item("Tasks", "task_alt", _list("task")),
                    _item("Jobs", "work", _list("job")),
                    _badge(
                        _item("Executions", "play_circle", _list("execution")),
                        "tasks_app.admin.dashboard.failed_badge",
                        "warning",
                    ),
                    _badge(
                        _item("Approvals", "approval", _list("approval")),
                        "tasks_app.admin.dashboard.approval_badge",
                        "info",
                    ),
                    _badge(
                        _item("Dead letters", "report", _list("deadletterjob")),
                        "tasks_app.admin.dashboard.dead_letter_badge",
                        "danger",
                    ),
                ],
            },
            {
                "title": "Machine",
                "items": [
                    _item("Queues", "low_priority", _list("queue")),
                    _item("Workers", "memory", _list("worker")),
                    _item("Clock", "schedule", _list("periodictask", "django_celery_beat"), _is_superuser),
                ],
            },
            {
                "title": "Record",
                "items": [
                    _item("Events", "bolt", _list("event")),
                    _item("Audit", "fact_check", _list("auditentry"), _may_read_audit),
                ],
            },
            {
                "title": "Setup",
                "items": [
                    _item("Projects", "folder", _list("project")),
                    _item("API keys", "key", _list("apikey")),
                    _item("Organisations", "domain", _list("organization")),
                    _item("Memberships", "badge", _list("membership")),
                    _item("Users", "group", _list("user", "auth"), _is_superuser),
                ],
            },
        ],
    },
    "TABS": [
        _status_tabs("task", ["running", "waiting", "queued", "paused", "completed", "failed", "cancelled"]),
        _status_tabs("job", ["running", "queued", "pending", "retrying", "completed", "failed", "cancelled"]),
        _status_tabs("execution", ["running", "completed", "failed", "cancelled", "paused", "lost"]),
        _status_tabs("approval", ["open", "approved", "rejected", "expired", "cancelled"]),
        _status_tabs("deadletterjob", ["open", "retried", "replayed", "discarded", "cancelled"]),
    ],
}
