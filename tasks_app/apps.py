"""The runtime as a Django app."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


def _ensure_defaults(using: str, **kwargs: Any) -> None:
    from tasks_app.services import setup

    if using != "default":
        return
    setup.ensure_defaults()
    if apps.is_installed("django_celery_beat"):
        setup.ensure_ticks()


class TasksAppConfig(AppConfig):
    name = "tasks_app"
    verbose_name = "Runtime"

    def ready(self) -> None:
        post_migrate.connect(_ensure_defaults, sender=self)
