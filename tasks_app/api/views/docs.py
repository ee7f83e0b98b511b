"""/api/schema and /api/docs, and the answer for every address there is not."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import Http404
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.exceptions import NotAuthenticated
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from tasks_app.api.base import ApiView
from tasks_app.api.permissions import HasPrincipal

SchemaView = SpectacularAPIView.as_view(permission_classes=[HasPrincipal])


class DocsView(SpectacularSwaggerSplitView):
    """The interactive description, without anything from another host. A browser that is not signed in may do so."""

    permission_classes = [HasPrincipal]
    url_name = "api-schema"
    url_self = "/api/docs"

    def handle_exception(self, exc: Exception) -> Any:
        if isinstance(exc, NotAuthenticated) and "text/html" in self.request.META.get("HTTP_ACCEPT", ""):
            return redirect_to_login(self.request.get_full_path())
        return super().handle_exception(exc)


class Unknown(ApiView):
    """404 in the one shape, for every method."""

    permission_classes = [AllowAny]
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise Http404

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        raise Http404

    post = put = patch = delete = head = trace = get
    options = get  # type: ignore[assignment]
