"""The one import an author of actions needs. See docs/how-to/write-an-action.md."""

from tasks_app.actions.definition import ActionDefinition, ActionInput, ActionOutput, action
from tasks_app.actions.plugin import Plugin
from tasks_app.domain.errors import ActionError, WaitTimeout
from tasks_app.domain.retry import RetryPolicy
from tasks_app.domain.waits import ChildOutcome, Decision, ReceivedEvent
from tasks_app.runtime import outbound
from tasks_app.runtime.context import Cancelled, Context

__all__ = [
    "ActionDefinition",
    "ActionError",
    "ActionInput",
    "ActionOutput",
    "Cancelled",
    "ChildOutcome",
    "Context",
    "Decision",
    "Plugin",
    "ReceivedEvent",
    "RetryPolicy",
    "WaitTimeout",
    "action",
    "outbound",
]
