"""The operator's desk: a door on Django's admin with the looks of django-unfold. It calls services and queries."""

# Their admins are registered first, so that ours can take their place whatever the order of the installed apps.
import django.contrib.auth.admin  # noqa: F401
import django_celery_beat.admin  # noqa: F401
from django.contrib import admin

from tasks_app.admin import (  # noqa: F401
    accounts,
    approvals,
    clock_entries,
    dashboard,
    dead_letters,
    executions,
    jobs,
    machine,
    records,
    search,
    setup,
    tasks,
)

admin.site.extra_urls = lambda: dashboard.urls(admin.site)  # type: ignore[attr-defined]
admin.site.search = search.checked(admin.site.search)  # type: ignore[attr-defined]
admin.site.site_title = "DevOS"
admin.site.index_title = "Dashboard"
