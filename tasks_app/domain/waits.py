"""What a running action may wait for, and what it gets when it goes on. Pure rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from tasks_app.domain import ids, jsonsafe
from tasks_app.domain.errors import ActionError
from tasks_app.domain.principal import ROLES

WAIT_MAX_S = 366 * 86_400.0
KEY_MAX = 300
TITLE_MAX = 300

# Written by the set-based statements of the runtime, which match no waits. Children have a way of their own.
RUNTIME_EVENTS = ("task.", "job.", "execution.")
# What the platform says of itself; nobody else can.
PLATFORM_EVENTS = (*RUNTIME_EVENTS, "approval.", "dead_letter.", "api_key.", "key.", "queue.", "worker.", "project.")

_PATTERN = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*(\.\*|\.[a-z][a-z0-9_]*)")


class StepKind(StrEnum):
    STEP = "step"
    SPAWN = "spawn"
    SLEEP = "sleep"
    EVENT = "event"
    APPROVAL = "approval"
    CHILDREN = "children"


class StepState(StrEnum):
    """*open* waits until its deadline; the others are final. *cancelled*: its job ended before it did."""

    OPEN = "open"
    DONE = "done"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


class ApprovalState(StrEnum):
    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class WaitRequest:
    """A wait as the action asks for it. ``timeout_s`` counts from the first time it was asked for.

    ``name`` stands in for what is waited for when a later run is compared with an earlier one. ``key``: "" is any key.
    """

    kind: StepKind
    name: str
    timeout_s: float
    pattern: str = ""
    key: str = ""
    children: tuple[UUID, ...] = ()
    title: str = ""
    details: Any = None
    role: str = "operator"
    permission: str = "approvals.decide"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a wait stands. When it is open the job parks for ``remaining_s`` at most, with ``blocked_by``.

    ``timeout_s``: its whole length, from its first start.
    """

    state: StepState
    output: Any
    timeout_s: float
    remaining_s: float = 0.0
    blocked_by: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """An event that ended a `Context.wait_event`. ``resource`` is (type, id)."""

    id: str
    type: str
    key: str
    data: Any
    resource: tuple[str, str] | None
    timestamp: datetime


@dataclass(frozen=True, slots=True)
class Decision:
    """What came of a `Context.wait_approval`. ``by``: who, as ``type:id``."""

    approved: bool
    by: str
    comment: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ChildOutcome:
    """How a child task ended. ``status``: completed, failed, cancelled, or missing when it was deleted."""

    task_id: str
    type: str
    status: str
    output: Any
    error: dict[str, Any] | None

    @property
    def succeeded(self) -> bool:
        return self.status == "completed"


def refused(message: str) -> ActionError:
    """The error for a wait that makes no sense: a fault in the action, never retried."""
    return ActionError("INVALID_WAIT", message, retryable=False)


def seconds(value: float, what: str) -> float:
    """A span as a wait takes it. Raises `ActionError` INVALID_WAIT outside 0 s to 366 days."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= WAIT_MAX_S:
        raise refused(f"{what} is {value!r}; it must be 0 to {WAIT_MAX_S:.0f} seconds.")
    return float(value)


def for_event(pattern: str, key: str | None, timeout_s: float) -> WaitRequest:
    """A wait for an event whose type is ``pattern``, or begins with it up to its ``.*``. Raises INVALID_WAIT."""
    if len(pattern) > 200 or not _PATTERN.fullmatch(pattern):
        raise refused(f"{pattern[:200]!r} is neither an event type like website.created nor a pattern like website.*")
    if pattern.startswith(RUNTIME_EVENTS):
        raise refused(f"{pattern}: events of the runtime itself cannot be waited for. For tasks use ctx.wait_children.")
    if key is not None and (not 1 <= len(key) <= KEY_MAX or jsonsafe.text_problem(key)):
        raise refused(f"The key of a wait must be 1 to {KEY_MAX} characters of text.")
    name = pattern if key is None else f"{pattern} {key}"
    return WaitRequest(StepKind.EVENT, _short(name), seconds(timeout_s, "timeout_s"), pattern=pattern, key=key or "")


def for_sleep(span_s: float) -> WaitRequest:
    """A wait for time to pass."""
    return WaitRequest(StepKind.SLEEP, "sleep", seconds(span_s, "seconds"))


def for_approval(title: str, details: Any, role: str, permission: str, timeout_s: float) -> WaitRequest:
    """A wait for a person's decision. Raises INVALID_WAIT."""
    if not title.strip():
        raise refused("An approval needs a title: what is to be decided.")
    if role not in ROLES[1:]:
        raise refused(f"role is {role!r}; those who decide are {' or '.join(ROLES[1:])}.")
    title = jsonsafe.clean_text(title)[:TITLE_MAX]
    return WaitRequest(
        StepKind.APPROVAL,
        _short(title),
        seconds(timeout_s, "timeout_s"),
        title=title,
        details=jsonsafe.clean(details),
        role=role,
        permission=permission,
    )


def for_children(task_ids: Sequence[str], timeout_s: float) -> WaitRequest:
    """A wait for the end of tasks this one has spawned. Raises INVALID_WAIT without any."""
    if not task_ids:
        raise refused("There are no children to wait for: ctx.spawn makes them.")
    # The newest first: it is the most likely to be unfinished, and one unfinished child is all a look has to find.
    children = tuple(ids.from_text("task", text) for text in reversed(task_ids))
    return WaitRequest(
        StepKind.CHILDREN, f"{len(children)} children", seconds(timeout_s, "timeout_s"), children=children
    )


def patterns_for(type: str) -> list[str]:
    """Every pattern that an event of ``type`` fits: itself and ``a.*`` for each part in front."""
    parts = type.split(".")
    return [type, *(".".join(parts[:n]) + ".*" for n in range(1, len(parts)))]


def is_waited_for(type: str) -> bool:
    """Whether waits may name events of this type."""
    return not type.startswith(RUNTIME_EVENTS)


def _short(text: str) -> str:
    return jsonsafe.clean_text(text)[:200]
