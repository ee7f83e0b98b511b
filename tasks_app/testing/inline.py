"""Run an action in the test's own process: real input and output models, no database, no worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tasks_app.actions.definition import ActionDefinition
from tasks_app.domain import ids
from tasks_app.domain.costs import Cost
from tasks_app.domain.principal import Actor
from tasks_app.runtime.context import Context, Identity
from tasks_app.runtime.slots import Signal


class RecordingReporter:
    """Keeps what an action says and spends.

    Set ``asked`` or ``shutting_down`` to try its reaction to a cancel or a shutdown.
    """

    def __init__(self, asked: Signal | None = None, shutting_down: bool = False) -> None:
        self.asked = asked
        self.shutting_down = shutting_down
        self.progress: list[dict[str, Any]] = []
        self.logs: list[dict[str, Any]] = []
        self.events: list[tuple[str, Any, tuple[str, str] | None]] = []
        self.costs: list[Cost] = []
        self.steps: dict[int, Any] = {}

    def report(self, progress: dict[str, Any] | None, logs: list[dict[str, Any]]) -> None:
        self.progress += [progress] if progress else []
        self.logs += logs

    def signal(self) -> Signal | None:
        return self.asked

    def stopping(self) -> bool:
        return self.shutting_down

    def publish(self, type: str, data: Any, resource: tuple[str, str] | None) -> None:
        self.events.append((type, data, resource))

    def spend(self, costs: list[Cost]) -> bool:
        self.costs += costs
        return True

    def step(self, ordinal: int, name: str, work: Callable[[], Any]) -> tuple[Any, bool]:
        if ordinal in self.steps:
            return self.steps[ordinal], True
        self.steps[ordinal] = work()
        return self.steps[ordinal], False


def run_action(
    action: ActionDefinition,
    value: Any,
    *,
    reporter: RecordingReporter | None = None,
    checkpoint: dict[str, Any] | None = None,
    attempt: int = 1,
) -> Any:
    """Validate ``value``, call the action and return what it returned; whatever it raises comes through.

    ``reporter`` records progress, logs and events; ``checkpoint`` makes it a continued run.
    """
    identity = Identity(
        organization_id=ids.new_id(),
        actor=Actor("user", "0"),
        correlation_id="test",
        attempt=attempt,
        max_attempts=action.retry.max_attempts,
        execution=ids.new_id(),
        task=ids.new_id(),
        job=ids.new_id(),
    )
    context = Context(identity, reporter or RecordingReporter(), checkpoint=checkpoint, log_lines_max=100_000)
    try:
        return action(context, action.parse_input(value))
    finally:
        context.flush()
