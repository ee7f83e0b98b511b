"""What a caller says when asking for work."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tasks_app.domain import jsonsafe
from tasks_app.queries.fields import Instant


def _storable(text: str) -> str:
    problem = jsonsafe.text_problem(text)
    if problem:
        raise ValueError(problem)
    return text


Text = Annotated[str, AfterValidator(_storable)]


class ResourceRef(BaseModel):
    """The thing a task is about."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Text = Field(min_length=1, max_length=200)
    id: Text = Field(min_length=1, max_length=300)


class TaskSpec(BaseModel):
    """One task to create. ``type`` is the id of the action it runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Text = Field(min_length=1, max_length=200)
    input: Any = Field(default_factory=dict, description="The action's input, by its schema.")
    name: Text = Field("", max_length=300)
    description: Text = Field("", max_length=10_000)
    priority: int = Field(0, ge=-100, le=100, strict=True, description="-100..100, higher runs first.")
    queue: Text | None = Field(None, max_length=63, description="Instead of the action's own queue.")
    project: Text | None = Field(None, max_length=100, description="Id or slug of a project.")
    resource: ResourceRef | None = None
    delay_s: float | None = Field(
        None, ge=0, le=366 * 86_400, strict=True, description="Seconds to wait before it may run."
    )
    run_at: Instant | None = Field(None, description="Not before this instant (with an offset).")
    parent_task: Text | None = Field(None, max_length=100)
    max_attempts: int | None = Field(None, ge=1, le=100, strict=True, description="Instead of the action's own limit.")
    correlation_id: Text | None = Field(None, min_length=1, max_length=128)
    mode: Literal["async", "stream"] = "async"

    @model_validator(mode="after")
    def _one_start(self) -> TaskSpec:
        if self.delay_s is not None and self.run_at is not None:
            raise ValueError("give delay_s or run_at, not both")
        return self

    def seconds_from(self, now: datetime) -> float:
        """How long from ``now`` until the task may run; 0 when it may at once."""
        if self.run_at is not None:
            return max(0.0, (self.run_at - now).total_seconds())
        return self.delay_s or 0.0


class Submitted(BaseModel):
    """The answer to a submit. ``replayed``: this Idempotency-Key had been used, nothing new was created."""

    task_id: UUID
    job_id: UUID
    status: str
    replayed: bool = False
