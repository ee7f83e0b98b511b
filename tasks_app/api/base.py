"""What the views share: parameters and bodies become models, and whatever is not expected is refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.http import QueryDict
from pydantic import BaseModel, ConfigDict, ValidationError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tasks_app.domain import ids, jsonsafe
from tasks_app.domain.errors import InvalidInput, NotFound
from tasks_app.domain.principal import Principal
from tasks_app.queries.paging import Page

M = TypeVar("M", bound=BaseModel)

_IDEMPOTENCY_KEY_MAX = 255


class NoParameters(BaseModel):
    """An endpoint without query parameters."""

    model_config = ConfigDict(extra="forbid")


class OnlyJson(BaseContentNegotiation):
    """Everything answers JSON, whatever a client says it prefers: there is nothing else to choose from."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        sent = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == sent), None)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class ApiView(APIView):
    """``query``: method -> model of its query parameters (none when it is not listed)."""

    content_negotiation_class = OnlyJson
    metadata_class = None
    query: ClassVar[Mapping[str, type[BaseModel]]] = {}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        model = self.query.get("GET" if request.method == "HEAD" else str(request.method), NoParameters)
        self.parameters: Any = parse(model, _flat(request.query_params, model))

    @property
    def principal(self) -> Principal:
        principal = self.request.auth
        if not isinstance(principal, Principal):
            raise TypeError("HasPrincipal lets nobody else in")
        return principal

    def body(self, model: type[M]) -> M:
        """The request body as ``model``. An absent body is an empty object."""
        data = self.request.data
        if isinstance(data, QueryDict) and not data:
            data = {}
        if not isinstance(data, dict):
            raise InvalidInput(
                "The request body must be a JSON object.", [{"field": "body", "problem": "not an object"}]
            )
        empty = not data and any(field.is_required() for field in model.model_fields.values())
        return parse(model, data, hint="The request body is empty: send a JSON object. " if empty else "")

    def idempotency_key(self) -> str | None:
        """The header Idempotency-Key. Raises `InvalidInput` when it is there but cannot be used."""
        key = self.request.META.get("HTTP_IDEMPOTENCY_KEY")
        if key is None:
            return None
        if not 1 <= len(key) <= _IDEMPOTENCY_KEY_MAX or not key.isascii() or not key.isprintable():
            problem = f"must be 1 to {_IDEMPOTENCY_KEY_MAX} printable ASCII characters"
            raise InvalidInput(f"Idempotency-Key: {problem}", [{"field": "Idempotency-Key", "problem": problem}])
        return str(key)


def answer(value: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A model as a response."""
    return Response(value.model_dump(mode="json"), status=status, headers=dict(headers or {}))


def listed(page: Page[Any], represent: Any) -> Response:
    """A page as a response. ``represent``: row -> model."""
    results = [represent(row).model_dump(mode="json") for row in page.rows]
    return Response({"results": results, "next": page.next})


def uuid_of(noun: str, text: str) -> UUID:
    """The UUID of an id in an address. Raises `NotFound`."""
    return ids.from_text(noun, text)


def text_of(noun: str, text: str) -> str:
    """A name in an address. Raises `NotFound` for a text that nothing can be called."""
    if jsonsafe.text_problem(text):
        raise NotFound(noun, text)
    return text


def parse(model: type[M], given: Mapping[str, Any], *, at: str = "", hint: str = "") -> M:
    """``given`` as ``model``. Raises `InvalidInput` with one entry a wrong field; ``at`` is put before their names."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        details = problems_of(error, at)
        named = "; ".join(f"{d['field']}: {d['problem']}" for d in details[:5])
        raise InvalidInput(jsonsafe.clean_text(hint + named), details) from error


def problems_of(error: ValidationError, at: str = "") -> list[dict[str, str]]:
    """The errors of pydantic as ``{"field", "problem"}``."""
    found = []
    for one in error.errors(include_url=False, include_input=False, include_context=False):
        field = ".".join([*([at] if at else []), *(str(part)[:100] for part in one["loc"])]) or "body"
        problem = "is not known here" if one["type"] == "extra_forbidden" else one["msg"]
        found.append({"field": field, "problem": problem.removeprefix("Value error, ")})
    return found


def _flat(given: QueryDict, model: type[BaseModel]) -> dict[str, Any]:
    """Query parameters as a dict: lists where the model has lists (repeated or with commas), else one text each."""
    found: dict[str, Any] = {}
    for name, values in given.lists():
        problem = next(filter(None, map(jsonsafe.text_problem, [name, *values])), None)
        if problem:
            raise InvalidInput(f"A query parameter {problem}.", [{"field": name[:100], "problem": problem}])
        field = model.model_fields.get(name)
        if field is not None and field.default == []:
            found[name] = list(_parts(values))
        elif len(values) == 1:
            found[name] = values[0]
        else:
            problem = "is given more than once"
            raise InvalidInput(f"{name[:100]}: {problem}", [{"field": name[:100], "problem": problem}])
    return found


def _parts(values: Iterable[str]) -> Iterable[str]:
    return (part.strip() for value in values for part in value.split(",") if part.strip())
