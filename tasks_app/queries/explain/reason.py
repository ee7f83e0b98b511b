"""What an explanation is made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

NOBODY = "nobody has to"
OPERATOR = "an operator"
HOST = "whoever runs the platform"


@dataclass(frozen=True, slots=True)
class Holder:
    """What stands in the way. ``type`` is task, job, queue, worker, lease, action, event or approval.

    ``id`` is what doors show; ``name`` is for people.
    """

    type: str
    id: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. ``job_id`` None: it is about the whole task. ``until`` None: it has no end of its own.

    ``cleared_by`` says who can do something about it, ``how`` what.
    """

    code: str
    message: str
    job_id: UUID | None = None
    holder: Holder | None = None
    since: datetime | None = None
    until: datetime | None = None
    cleared_by: str = NOBODY
    how: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """``running``: a job of the task runs. ``reasons``: the one to look at first comes first; never empty."""

    task_id: UUID
    status: str
    running: bool
    reasons: list[Reason]


def sentence(text: str) -> str:
    """``text`` with a full stop, unless it ends in a mark already: parts of it are what people wrote."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
