"""Actions as the API shows them."""

from __future__ import annotations

from pydantic import Field

from tasks_app.actions.definition import ActionDefinition, Mode
from tasks_app.api.represent.common import Json, Out
from tasks_app.domain.principal import Principal
from tasks_app.domain.retry import RetryPolicy


class ActionOut(Out):
    id: str
    version: int
    title: str
    description: str
    plugin: str
    permission: str
    allowed: bool = Field(description="Whether the caller may run it.")
    dangerous: bool
    queue: str
    timeout_s: float
    retry: RetryPolicy
    modes: list[Mode]
    supports_pause: bool
    agent_tool: bool


class ActionDetail(ActionOut):
    input_schema: Json = Field(description="JSON Schema.")
    output_schema: Json = Field(description="JSON Schema; null when the action answers any JSON.")


class ActionList(Out):
    results: list[ActionOut]
    next: str | None


def action_out(action: ActionDefinition, principal: Principal) -> ActionOut:
    return ActionOut(
        id=action.id,
        version=action.version,
        title=action.title,
        description=action.description,
        plugin=action.plugin,
        permission=action.permission,
        allowed=principal.may(action.permission, dangerous=action.dangerous),
        dangerous=action.dangerous,
        queue=action.queue,
        timeout_s=action.timeout_s,
        retry=action.retry,
        modes=sorted(action.modes),
        supports_pause=action.supports_pause,
        agent_tool=action.agent_tool,
    )


def action_detail(action: ActionDefinition, principal: Principal) -> ActionDetail:
    listed = action_out(action, principal).model_dump()
    return ActionDetail(**listed, input_schema=action.input_schema(), output_schema=action.output_schema())
