"""Every address the web process answers to."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from devos.health import health

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("health", health, name="health"),
    path("api/", include("tasks_app.api.urls")),
    path("admin/", admin.site.urls),
]
