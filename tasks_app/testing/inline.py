"""Run an action in the test's own process: real input and output models, no database, no worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from tasks_app.actions.definition import ActionDefinition
from tasks_app.domain import ids, waits
from tasks_app.domain.costs import Cost
from tasks_app.domain.principal import Actor
from tasks_app.domain.waits import Standing, StepKind, StepState, WaitRequest
from tasks_app.runtime.context import Context, Identity
from tasks_app.runtime.slots import Signal

# Given instead of an event, a decision or an outcome: it does not come in time.
TIMES_OUT = object()


class NothingGiven(Exception):
    """The action waits for something that the test has not given."""


class RecordingReporter:
    """Keeps what an action says and spends, and gives it what it waits for.

    Set ``asked`` or ``shutting_down`` to try its reaction to a cancel or a shutdown. ``incoming``: events as (type,
    data) or (type, data, key), each used once. ``decisions``: True or False, or (True, comment). ``children``: how the
    spawned tasks end, in their order: an output, or an exception for one that failed. `TIMES_OUT` in place of any of
    them ends that wait by its deadline. Sleeping takes no time. A reporter that is used again plays the later attempt.
    """

    def __init__(
        self,
        asked: Signal | None = None,
        shutting_down: bool = False,
        *,
        incoming: Sequence[Any] = (),
        decisions: Sequence[Any] = (),
        children: Sequence[Any] = (),
    ) -> None:
        self.asked = asked
        self.shutting_down = shutting_down
        self.incoming, self.decisions, self.children = list(incoming), list(decisions), list(children)
        self.progress: list[dict[str, Any]] = []
        self.logs: list[dict[str, Any]] = []
        self.events: list[tuple[str, Any, tuple[str, str] | None]] = []
        self.costs: list[Cost] = []
        self.steps: dict[int, Any] = {}
        self.slept: list[float] = []
        self.approvals: list[WaitRequest] = []
        self.spawned: list[tuple[str, Any, dict[str, Any]]] = []
        self._waited: dict[int, Standing] = {}

    def report(self, progress: dict[str, Any] | None, logs: list[dict[str, Any]]) -> None:
        self.progress += [progress] if progress else []
        self.logs += logs

    def signal(self) -> Signal | None:
        return self.asked

    def stopping(self) -> bool:
        return self.shutting_down

    def publish(self, type: str, data: Any, resource: tuple[str, str] | None, key: str) -> None:
        self.events.append((type, data, resource))

    def spend(self, costs: list[Cost]) -> bool:
        self.costs += costs
        return True

    def step(self, ordinal: int, name: str, work: Callable[[], Any]) -> tuple[Any, bool]:
        if ordinal in self.steps:
            return self.steps[ordinal], True
        self.steps[ordinal] = work()
        return self.steps[ordinal], False

    def spawn(self, ordinal: int, type: str, input: Any, options: dict[str, Any]) -> tuple[str, bool]:
        if ordinal in self.steps:
            return self.steps[ordinal], True
        self.spawned.append((type, input, options))
        self.steps[ordinal] = ids.to_text("task", ids.new_id())
        return self.steps[ordinal], False

    def wait(self, ordinal: int, request: WaitRequest) -> Standing:
        if ordinal not in self._waited:
            answers = {
                StepKind.SLEEP: self._sleep,
                StepKind.EVENT: self._event,
                StepKind.APPROVAL: self._decision,
                StepKind.CHILDREN: self._outcomes,
            }
            answer = answers[request.kind](request)
            state = StepState.TIMED_OUT if answer is TIMES_OUT else StepState.DONE
            self._waited[ordinal] = Standing(state, answer, request.timeout_s)
        return self._waited[ordinal]

    def _sleep(self, request: WaitRequest) -> None:
        self.slept.append(request.timeout_s)

    def _event(self, request: WaitRequest) -> Any:
        for given in self.incoming:
            if given is TIMES_OUT:
                self.incoming.remove(given)
                return TIMES_OUT
            type, data, key = (*given, "")[:3]
            if request.pattern in waits.patterns_for(type) and request.key in ("", key):
                self.incoming.remove(given)
                return {
                    "id": str(ids.new_id()),
                    "type": type,
                    "key": key,
                    "data": data,
                    "resource_type": None,
                    "resource_id": None,
                    "timestamp": datetime.now(UTC).isoformat(),
                }
        raise NothingGiven(f"the event {request.name}: give it with RecordingReporter(incoming=[(type, data, key)])")

    def _decision(self, request: WaitRequest) -> Any:
        self.approvals.append(request)
        if not self.decisions:
            raise NothingGiven(f"the approval {request.title!r}: give it with RecordingReporter(decisions=[True])")
        given = self.decisions.pop(0)
        if given is TIMES_OUT:
            return TIMES_OUT
        approved, comment = given if isinstance(given, tuple) else (given, "")
        return {"approved": approved, "by": "user:0", "comment": comment, "at": datetime.now(UTC).isoformat()}

    def _outcomes(self, request: WaitRequest) -> Any:
        wanted = list(reversed(request.children))
        if len(self.children) < len(wanted):
            raise NothingGiven(f"{len(wanted)} children: give how they end with RecordingReporter(children=[...])")
        given, self.children = self.children[: len(wanted)], self.children[len(wanted) :]
        if any(one is TIMES_OUT for one in given):
            return TIMES_OUT
        return [_outcome(str(task), one) for task, one in zip(wanted, given, strict=True)]


def _outcome(task_id: str, given: Any) -> dict[str, Any]:
    failed = isinstance(given, Exception)
    error = {"code": getattr(given, "code", "ACTION_ERROR"), "message": str(given)} if failed else None
    status = "failed" if failed else "completed"
    return {"id": task_id, "type": "", "status": status, "output": None if failed else given, "error": error}


def run_action(
    action: ActionDefinition,
    value: Any,
    *,
    reporter: RecordingReporter | None = None,
    checkpoint: dict[str, Any] | None = None,
    attempt: int = 1,
) -> Any:
    """Validate ``value``, call the action and return what it returned; whatever it raises comes through.

    ``reporter`` records progress, logs and events, and gives the action what it waits for (`NothingGiven` when the
    test gave it nothing); ``checkpoint`` makes it a continued run. `Snooze` comes through when the action snoozes.
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
    context = Context(
        identity, reporter or RecordingReporter(), checkpoint=checkpoint, log_lines_max=100_000, wait_timeout_s=86_400
    )
    try:
        return action(context, action.parse_input(value))
    finally:
        context.flush()
