"""What bodies may contain."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tasks_app.domain import jsonsafe
from tasks_app.queries.fields import Instant
from tasks_app.services.dead_letters import BulkSpec
from tasks_app.services.tasks import ResourceRef, TaskSpec


def _storable(text: str) -> str:
    if problem := jsonsafe.text_problem(text):
        raise ValueError(problem)
    return text


Text = Annotated[str, AfterValidator(_storable)]
Reason = Annotated[Text, Field(max_length=500, description="Why; it goes into the audit.")]


class Body(BaseModel):
    """Base of every request: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ReasonBody(Body):
    reason: Reason = ""


class ReplayBody(ReasonBody):
    input: dict[str, Any] | None = Field(None, description="Instead of the first input.")


class DecisionBody(Body):
    comment: Text = Field("", max_length=500, description="Why; the action and the audit get it.")


class EventBody(Body):
    type: Text = Field(min_length=3, max_length=200, description="Dotted lower case, like website.created.")
    data: Any = Field(default_factory=dict)
    resource: ResourceRef | None = None
    key: Text = Field("", max_length=300, description="Which of many it is about, for those who wait for one.")
    correlation_id: Text | None = Field(None, min_length=1, max_length=128)


class PriorityBody(Body):
    priority: int = Field(ge=-100, le=100, strict=True)


class PauseBody(ReasonBody):
    until: Instant | None = Field(None, description="When it resumes by itself.")


class BulkBody(Body):
    tasks: list[Any] = Field(min_length=1, description="Each as for POST /tasks.")


class BulkDocument(Body):
    """`BulkBody` as it is described; the items are read one by one, so that each error names its index."""

    tasks: list[TaskSpec] = Field(min_length=1)


class RunBody(Body):
    """How to run an action. Everything but ``input`` and ``mode`` is about the task, so not for sync."""

    input: dict[str, Any] = Field(default_factory=dict, description="By the action's input schema.")
    mode: Literal["sync", "async", "stream"] = Field(
        "async", description="async answers with the task; sync with the result; stream with server-sent events."
    )
    name: Text | None = Field(None, max_length=300)
    description: Text | None = Field(None, max_length=10_000)
    priority: int | None = Field(None, ge=-100, le=100, strict=True)
    queue: Text | None = Field(None, max_length=63)
    project: Text | None = Field(None, max_length=100)
    resource: ResourceRef | None = None
    delay_s: float | None = Field(None, ge=0, le=366 * 86_400, strict=True)
    run_at: Instant | None = None
    parent_task: Text | None = Field(None, max_length=100)
    max_attempts: int | None = Field(None, ge=1, le=100, strict=True)
    correlation_id: Text | None = Field(None, min_length=1, max_length=128)

    def about_the_task(self) -> dict[str, Any]:
        """The fields of `TaskSpec` that were given."""
        given = {name: getattr(self, name) for name in self.model_fields_set - {"input", "mode"}}
        return {name: value for name, value in given.items() if value is not None}


class ProjectBody(Body):
    slug: Text = Field(min_length=1, max_length=63, description="Lower-case letters, digits and hyphens.")
    name: Text = Field("", max_length=200, description="The slug when it is empty.")
    description: Text = Field("", max_length=10_000)


class ProjectPatch(Body):
    slug: Text | None = Field(None, min_length=1, max_length=63)
    name: Text | None = Field(None, min_length=1, max_length=200)
    description: Text | None = Field(None, max_length=10_000)


class KeyBody(Body):
    name: Text = Field(min_length=1, max_length=200)
    role: Literal["viewer", "operator", "admin"] = "operator"
    scopes: list[Text] = Field(
        [], max_length=50, description="Permission patterns like `tasks.*`; empty: all of the role."
    )
    expires_at: Instant | None = None


class DeadLetterBulkBody(BulkSpec):
    """`BulkSpec`, and whether only to count."""

    dry_run: bool = Field(False, strict=True, description="Only say how many letters are meant.")

    def spec(self) -> BulkSpec:
        return BulkSpec.model_validate(self.model_dump(mode="json", exclude_unset=True, exclude={"dry_run"}))
