"""What was asked for, without running it."""

from __future__ import annotations

from typing import Any

from tasks_app.domain.states import JOB_FINAL
from tasks_app.models import Job


def assert_enqueued(
    type: str,
    *,
    input: dict[str, Any] | None = None,
    count: int | None = None,
    queue: str | None = None,
    priority: int | None = None,
) -> list[Job]:
    """Assert that jobs of the action ``type`` wait or run, and return them, oldest first.

    ``input``: these fields have these values, others do not matter (nested objects likewise). ``count``: exactly so
    many (0: none); at least one when left out. The message of the AssertionError lists what is there instead.
    """
    unfinished = list(Job.objects.exclude(status__in=JOB_FINAL).order_by("id"))
    found = [
        job
        for job in unfinished
        if job.action_id == type
        and (queue is None or job.queue_id == queue)
        and (priority is None or job.priority == priority)
        and (input is None or _holds(job.input, input))
    ]
    if len(found) != count if count is not None else not found:
        given = {"input": input, "queue": queue, "priority": priority}
        said = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        wanted = f"{'at least one' if count is None else count} of {type}{f' with {said}' if said else ''}"
        raise AssertionError(f"expected {wanted}, found {len(found)}. Unfinished jobs:\n{_listed(unfinished)}")
    return found


def _listed(jobs: list[Job]) -> str:
    lines = [f"  {job.action_id} on {job.queue_id}, {job.status}: {job.input!r}" for job in jobs[:50]]
    return "\n".join(lines) or "  none"


def _holds(value: Any, part: Any) -> bool:
    if isinstance(part, dict) and isinstance(value, dict):
        return all(name in value and _holds(value[name], wanted) for name, wanted in part.items())
    return bool(value == part)
