"""What several answers share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from tasks_app.domain import ids
from tasks_app.domain.masking import MASK
from tasks_app.domain.principal import Actor
from tasks_app.queries.logs import Line

# How `services.secrets` marks an encrypted value in a stored input.
_SECRET_MARK = "$secret"

Json = Any


class Out(BaseModel):
    """Base of every answer."""

    # Strict for us; clients must not take the absence of further fields for a promise.
    model_config = ConfigDict(extra="forbid", json_schema_extra=lambda schema: schema.pop("additionalProperties", None))


class Failure(Out):
    """Every error of every endpoint."""

    code: str = Field(description="UPPER_SNAKE, stable.")
    message: str = Field(description="What is wrong and what to do, for a person.")
    details: Json = Field(description="Often a list of `{field, problem}`.")
    request_id: str = Field(description="Quote it when you ask for help; it is in the logs.")


class ActorOut(Out):
    type: str = Field(description="user, api_key, system, schedule, plugin or agent.")
    id: str


class ResourceOut(Out):
    type: str
    id: str


class LogOut(Out):
    id: int
    execution_id: str | None = Field(description="None for a line of the platform itself.")
    level: str
    message: str
    metadata: Json
    timestamp: datetime


def public(noun: str, value: UUID | None) -> str | None:
    """The TypeID of an id that may be absent."""
    return None if value is None else ids.to_text(noun, value)


def actor_out(actor: Actor) -> ActorOut:
    return ActorOut(type=actor.type, id=actor.id)


def resource_out(type: str | None, id: str | None) -> ResourceOut | None:
    return ResourceOut(type=type, id=id or "") if type is not None else None


def log_out(line: Line) -> LogOut:
    return LogOut(
        id=line.id,
        execution_id=public("execution", line.execution_id),
        level=line.level,
        message=line.message,
        metadata=line.metadata,
        timestamp=line.timestamp,
    )


def masked(value: Any) -> Any:
    """A stored input with its secrets covered."""
    if isinstance(value, Mapping):
        if set(value) == {_SECRET_MARK}:
            return MASK
        return {key: masked(item) for key, item in value.items()}
    return [masked(item) for item in value] if isinstance(value, list) else value


def read(row: Any, name: str) -> Any:
    """A JSON value of a row, from a list (where heavy ones were left out) or from a detail."""
    return getattr(row, f"{name}_light") if hasattr(row, f"{name}_light") else getattr(row, name)


def omitted(row: Any, *names: str) -> list[str]:
    """Which values of a row are too heavy for the list it is in."""
    return [name for name in names if getattr(row, f"{name}_omitted", False)]


OMITTED = Field(description="Values too large for a list; read the row itself for them.")
