"""What an action is. Every option is checked when the action is registered, not when it runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tasks_app.domain import jsonsafe
from tasks_app.domain.errors import InvalidInput
from tasks_app.domain.retry import RetryPolicy

_ID = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
_PERMISSION = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
Mode = Literal["sync", "async", "stream"]


class ActionInput(BaseModel):
    """Base of every action's input: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ActionOutput(BaseModel):
    """Base of an action's output."""

    model_config = ConfigDict(extra="forbid")


class ActionDefinition(BaseModel):
    """A registered action: its function, its input and output models and its options. Calling it calls the function."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    id: str
    function: Callable[..., Any] = Field(exclude=True, repr=False)
    input_model: type[BaseModel] = Field(exclude=True, repr=False)
    output_model: type[BaseModel] | None = Field(exclude=True, repr=False)
    version: int = Field(1, ge=1, le=10_000)
    title: str = Field(min_length=1, max_length=200)
    description: str = Field("", max_length=4_000)
    permission: str
    queue: str = Field("default", pattern=r"^[a-z][a-z0-9_-]{0,62}$")
    timeout_s: float = Field(600, gt=0)
    retry: RetryPolicy = RetryPolicy()
    supports_pause: bool = False
    modes: frozenset[Mode] = frozenset({"async"})
    agent_tool: bool = False
    dangerous: bool = False
    plugin: str = ""

    @model_validator(mode="after")
    def _well_formed(self) -> ActionDefinition:
        if not _ID.fullmatch(self.id) or len(self.id) > 200:
            raise ValueError(f"action id {self.id!r} must be dotted lower case with a namespace, like seo.website.scan")
        if not _PERMISSION.fullmatch(self.permission):
            raise ValueError(f"permission {self.permission!r} of {self.id} must be dotted lower case, like seo.scan")
        if "async" not in self.modes:
            raise ValueError(f"{self.id}: every action runs async; add 'async' to modes")
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def parse_input(self, value: Any) -> BaseModel:
        """The typed input. Raises `InvalidInput` with one entry per wrong field."""
        try:
            return self.input_model.model_validate(value)
        except ValidationError as error:
            details = [
                {"field": ".".join(["input", *map(str, e["loc"])]), "problem": e["msg"]}
                for e in error.errors(include_url=False, include_input=False, include_context=False)
            ]
            listed = "; ".join(f"{d['field']}: {d['problem']}" for d in details[:5])
            raise InvalidInput(f"The input does not fit {self.id}: {jsonsafe.clean_text(listed)}", details) from error

    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the input."""
        return self.input_model.model_json_schema()

    def output_schema(self) -> dict[str, Any] | None:
        """JSON Schema of the output; None when the action returns any JSON."""
        return self.output_model.model_json_schema(mode="serialization") if self.output_model else None


def action(id: str, **options: Any) -> Callable[[Callable[..., Any]], ActionDefinition]:
    """Declare ``function(ctx, input) -> output`` as the action ``id``.

    The pydantic model of ``input`` comes from the annotation, the output's from the return annotation (a model, or
    anything else for free JSON). Raises pydantic's ValidationError or TypeError at import when an option is wrong.
    """

    def declare(function: Callable[..., Any]) -> ActionDefinition:
        hints = get_type_hints(function)
        parameters = list(inspect.signature(function).parameters)
        input_model = hints.get(parameters[1]) if len(parameters) == 2 else None
        if not (inspect.isclass(input_model) and issubclass(input_model, BaseModel)):
            raise TypeError(f"{id}: declare it as `def name(ctx: Context, input: SomeInput)` with a pydantic model")
        returned = hints.get("return")
        output_model = returned if inspect.isclass(returned) and issubclass(returned, BaseModel) else None
        described = {"title": id, "description": inspect.getdoc(function) or "", "permission": id, **options}
        return ActionDefinition(
            id=id, function=function, input_model=input_model, output_model=output_model, **described
        )

    return declare
