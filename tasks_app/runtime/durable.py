"""The durable part of a context: steps that are done once, and waits that give the worker back.

Everything here takes the next place in the order of the action's steps. When the action runs again, from its top, what
is stored at a place is returned at once, so the action comes back to where it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar
from uuid import UUID

from tasks_app.domain import ids, waits
from tasks_app.domain.errors import WaitTimeout
from tasks_app.domain.waits import ChildOutcome, Decision, ReceivedEvent, Standing, StepState, WaitRequest

T = TypeVar("T")

NAME_MAX = 200


class Park(BaseException):
    """Raised inside an action at a wait that is not over: this attempt ends, the job goes on when it is.

    BaseException: `except Exception` lets it pass. Code in ``finally`` runs each time.
    """

    def __init__(self, delay_s: float, blocked_by: dict[str, Any]) -> None:
        super().__init__()
        self.delay_s = delay_s
        self.blocked_by = blocked_by


class Snooze(BaseException):
    """Raised by `Durable.snooze`: this attempt ends, the next runs from the top after ``delay_s``."""

    def __init__(self, delay_s: float) -> None:
        super().__init__()
        self.delay_s = delay_s


class StepReporter(Protocol):
    """Where steps and waits are kept."""

    def step(self, ordinal: int, name: str, work: Callable[[], Any]) -> tuple[Any, bool]:
        """The stored result of a durable step, or that of ``work``, stored; and whether it was stored before."""

    def spawn(self, ordinal: int, type: str, input: Any, options: dict[str, Any]) -> tuple[str, bool]:
        """The id of the child task made at this place, made now if it was not before; and whether it was."""

    def wait(self, ordinal: int, request: WaitRequest) -> Standing:
        """Where the wait at this place stands; it is begun if it was not before."""


class Durable(ABC):
    """Steps and waits of `Context`. Not for several threads at once: the order of the calls makes them durable."""

    _steps: StepReporter

    def __init__(self, wait_timeout_s: float) -> None:
        self._wait_timeout_s = wait_timeout_s
        self._ordinal = 0
        self._spawned: list[str] = []
        self.steps_reused = 0
        self.parked: Park | Snooze | None = None
        self.redact: Callable[[Any], Any] = lambda value: value

    @abstractmethod
    def raise_if_cancelled(self) -> None:
        """Raise when somebody asked to cancel: nothing new is begun then."""

    # -- steps --------------------------------------------------------------------------------------------------------

    def step(self, name: str, work: Callable[[], T]) -> T:
        """Do ``work`` once for this job: a later attempt gets the stored result (JSON) instead of doing it again."""
        result, reused = self._steps.step(self._next(), name[:NAME_MAX], work)
        self.steps_reused += reused
        return result

    def spawn(self, type: str, input: Any = None, **options: Any) -> str:
        """Create a child task that runs the action ``type``, once for this job; returns its id.

        ``options`` are those of `TaskSpec` (name, priority, queue, delay_s, ...). It runs beside this action: see
        `wait_children`. Cancelling this task cancels it. Raises what submitting a task raises.
        """
        self.raise_if_cancelled()
        shown = {name: self.redact(value) for name, value in options.items()}
        task_id, reused = self._steps.spawn(self._next(), type, {} if input is None else input, shown)
        self.steps_reused += reused
        self._spawned.append(task_id)
        return task_id

    # -- waits --------------------------------------------------------------------------------------------------------

    def sleep(self, seconds: float) -> None:
        """Go on after ``seconds`` (0 to 366 days), counted from the first time this sleep was reached."""
        self._wait(waits.for_sleep(seconds), "time")

    def wait_event(self, type: str, *, key: str | None = None, timeout_s: float | None = None) -> ReceivedEvent:
        """The next event of ``type``, or whose type begins with it when it ends in ``.*``; with ``key``, of that key.

        Events since the task was created count, in the order they were published; one that an earlier wait of this job
        has had does not. Raises `WaitTimeout` when none is published within ``timeout_s`` of the first start of the
        wait (default: the knob ``wait_timeout_s``).
        """
        if key is not None and self.redact(key) != key:
            raise waits.refused("The key of a wait cannot be a secret: what a task waits for is shown.")
        request = waits.for_event(type, key, self._limit(timeout_s))
        found = self._wait(request, f"the event {request.name}")
        resource = (found["resource_type"], found["resource_id"] or "") if found["resource_type"] else None
        return ReceivedEvent(
            ids.to_text("event", UUID(found["id"])),
            found["type"],
            found["key"],
            found["data"],
            resource,
            datetime.fromisoformat(found["timestamp"]),
        )

    def wait_approval(
        self,
        title: str,
        *,
        details: Any = None,
        role: str = "operator",
        permission: str = "approvals.decide",
        timeout_s: float | None = None,
    ) -> Decision:
        """Ask people, and return what one of them decided; a rejection is a `Decision` too.

        ``details``: JSON that helps to decide. Whoever has ``role`` (operator or admin) and ``permission`` may decide.
        Raises `WaitTimeout` when nobody does in time.
        """
        request = waits.for_approval(self.redact(title), self.redact(details), role, permission, self._limit(timeout_s))
        found = self._wait(request, f"the approval {request.title!r}")
        return Decision(found["approved"], found["by"], found["comment"], datetime.fromisoformat(found["at"]))

    def wait_children(
        self, tasks: Sequence[str] | None = None, *, timeout_s: float | None = None
    ) -> list[ChildOutcome]:
        """How the tasks this one has spawned ended, whatever came of them, in the order they were spawned.

        ``tasks``: some of the ids from `spawn`, in their order; default: all spawned so far. Raises `WaitTimeout` when
        one is unfinished by then.
        """
        request = waits.for_children(self._spawned if tasks is None else tasks, self._limit(timeout_s))
        found = self._wait(request, f"{len(request.children)} child tasks")
        return [
            ChildOutcome(
                ids.to_text("task", UUID(one["id"])), one["type"] or "", one["status"], one["output"], one["error"]
            )
            for one in found
        ]

    def snooze(self, seconds: float) -> None:
        """End this attempt and run again from the top after ``seconds``. It costs no attempt, and takes no place."""
        self._stop(Snooze(waits.seconds(seconds, "seconds")))

    def _wait(self, request: WaitRequest, what: str) -> Any:
        self.raise_if_cancelled()
        standing = self._steps.wait(self._next(), request)
        if standing.state is StepState.OPEN:
            self._stop(Park(standing.remaining_s, standing.blocked_by or {"reason": str(request.kind)}))
        if standing.state is StepState.TIMED_OUT:
            raise WaitTimeout(what, standing.timeout_s)
        self.steps_reused += 1
        return standing.output

    def _next(self) -> int:
        if self.parked is not None:
            raise self.parked
        self._ordinal += 1
        return self._ordinal

    def _stop(self, why: Park | Snooze) -> None:
        """Raise, and remember: an action that catches everything must not end as if it were done."""
        self.parked = why
        raise why

    def _limit(self, timeout_s: float | None) -> float:
        return self._wait_timeout_s if timeout_s is None else timeout_s
