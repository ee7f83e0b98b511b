"""The OpenAPI description: made from the same models that read requests and write answers."""

from __future__ import annotations

import re
from typing import Any

from drf_spectacular.contrib.pydantic import PydanticExtension
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, model_json_schema

from tasks_app.api.base import ApiView
from tasks_app.api.represent.common import Failure

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description=(
        "1 to 255 printable characters. A repeated key gets the first answer again, with the header "
        "`Idempotency-Replayed: true`; with another body it gets 409. Kept for 24 hours."
    ),
)
LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID", str, OpenApiParameter.HEADER, description="Go on after this event, after a lost connection."
)
EVENT_STREAM = OpenApiResponse(
    OpenApiTypes.STR,
    "Server-sent events `status`, `progress`, `log`, and at the end `end`; each carries JSON. Comments keep the "
    "connection alive.",
)
_ALWAYS = {401: "No valid key or session.", 403: "Not allowed for this role or key.", 429: "Too many requests."}
_ERRORS = {
    400: "Something in the request is wrong; `details` names each field.",
    404: "Nothing by this id here.",
    409: "Not possible in the present state.",
    413: "The request body is too large.",
    415: "The request body is not declared as JSON.",
}


def documented(
    summary: str,
    answers: Any,
    *,
    status: int = 200,
    request: type[BaseModel] | None = None,
    errors: tuple[int, ...] = (),
    more: dict[Any, Any] | None = None,
    parameters: list[OpenApiParameter] | None = None,
) -> Any:
    """Describe a method of a view. ``errors``: statuses beyond those every endpoint has."""
    listed = {400, *errors, *((413, 415) if request is not None else ())}
    responses: dict[Any, Any] = {**({status: answers} if answers is not None else {}), **(more or {})}
    responses |= {code: OpenApiResponse(Failure, _ERRORS[code]) for code in sorted(listed)}
    responses |= {code: OpenApiResponse(Failure, words) for code, words in _ALWAYS.items()}
    return extend_schema(
        summary=summary,
        request=request,
        responses=responses,
        parameters=parameters,
    )


class ApiSchema(AutoSchema):
    """Query parameters come from the view's own models; the first part of the address is the tag."""

    def get_override_parameters(self) -> list[Any]:
        model = self.view.query.get(self.method) if isinstance(self.view, ApiView) else None
        return _parameters(model) if model else []

    def get_operation_id(self) -> str:
        """``get_task_logs``: the method and the name of the view."""
        words = re.sub(r"(?<!^)(?=[A-Z])", "_", type(self.view).__name__.removesuffix("View"))
        return f"{self.method}_{words}".lower()

    def get_description(self) -> str:  # type: ignore[override]
        # The docstring of a view is for its reader, not for the caller.
        return ""

    def get_tags(self) -> list[str]:
        return [self.path.removeprefix("/api/").split("/")[0]]


def _parameters(model: type[BaseModel]) -> list[OpenApiParameter]:
    found = []
    schema = model_json_schema(model, mode="validation")
    for name, described in schema.get("properties", {}).items():
        kept = _inlined(described, schema.get("$defs", {}))
        text = kept.pop("description", "")
        kept.pop("title", None)
        found.append(OpenApiParameter(name, kept, OpenApiParameter.QUERY, description=text))
    return found


def _inlined(described: Any, definitions: dict[str, Any]) -> Any:
    """``described`` without references and without the choice of null: an absent parameter is simply left out."""
    if isinstance(described, list):
        return [_inlined(item, definitions) for item in described]
    if not isinstance(described, dict):
        return described
    if "$ref" in described:
        return _inlined(definitions[described["$ref"].rsplit("/", 1)[1]], definitions)
    kept = {key: _inlined(value, definitions) for key, value in described.items()}
    if choices := [choice for choice in kept.pop("anyOf", []) if choice != {"type": "null"}]:
        kept = {**choices[0], **kept}
    if kept.get("default", 0) in (None, []):
        del kept["default"]
    return kept


class RequestModels(PydanticExtension):
    """Pydantic models, seen from the side they are used on: a default makes a field optional in a request only."""

    priority = 1

    def map_serializer(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        mode: JsonSchemaMode = "validation" if direction == "request" else "serialization"
        schema = model_json_schema(self.target, ref_template="#/components/schemas/{model}", mode=mode)
        for name, described in schema.pop("$defs", {}).items():
            component = ResolvedComponent(name=name, type=ResolvedComponent.SCHEMA, object=name, schema=described)
            auto_schema.registry.register_on_missing(component)
        return schema


class ApiKeyScheme(OpenApiAuthenticationExtension):
    target_class = "tasks_app.api.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "apiKey", "in": "header", "name": "Authorization", "description": "`Api-Key <key>`"}


class SessionScheme(OpenApiAuthenticationExtension):
    target_class = "tasks_app.api.authentication.SessionPrincipalAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid", "description": "Signed in at /admin/."}
