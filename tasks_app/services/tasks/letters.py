"""Closing dead letters. The one writer of their states: the desk's verbs and the task's own keep in step through it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from tasks_app.domain import clock
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import DeadLetterStatus, sources
from tasks_app.models import DeadLetterJob, Job, Task
from tasks_app.services import audit, events
from tasks_app.services.tasks.submit import owner_of


def close_of_jobs(
    principal: Principal,
    work: Iterable[tuple[Task, Sequence[Job]]],
    target: DeadLetterStatus,
    reason: str,
    replay_task_id: UUID | None = None,
) -> None:
    """Close the open letters of these jobs, whose tasks are locked or whose state does not matter."""
    task_of = {job.id: task for task, jobs in work for job in jobs}
    if not task_of:
        return
    found = DeadLetterJob.objects.select_for_update().filter(job_id__in=task_of, status__in=sources(target))
    letters = list(found.order_by("id"))
    replays = {letter.id: replay_task_id for letter in letters} if replay_task_id else None
    close(principal, [(letter, task_of[letter.job_id]) for letter in letters], target, reason, replays)


def close(
    principal: Principal,
    letters: Sequence[tuple[DeadLetterJob, Task]],
    target: DeadLetterStatus,
    reason: str,
    replays: Mapping[UUID, UUID] | None = None,
) -> None:
    """Write who decided what, when and why, with an event and an audit entry each. The letters are open and locked.

    ``replays``: letter -> the task that does its work again.
    """
    if not letters:
        return
    chosen = DeadLetterJob.objects.filter(id__in=[letter.id for letter, _ in letters], status__in=sources(target))
    chosen.update(status=target, decided_by=owner_of(principal), decided_at=clock.now(), reason=reason)
    if replays:
        for letter, _ in letters:
            letter.replay_task_id = replays[letter.id]
        DeadLetterJob.objects.bulk_update([letter for letter, _ in letters], ["replay_task_id"])
    events.publish_many(
        [
            events.event(
                f"dead_letter.{target}",
                organization_id=letter.organization_id,
                actor=principal.actor,
                correlation_id=task.correlation_id,
                data={"dead_letter": letter.public_id, "action": letter.action_id, "reason": reason},
                causation_id=task.id,
                task_id=task.id,
                job_id=letter.job_id,
                execution_id=letter.execution_id,
                metadata={"request_id": principal.request_id},
            )
            for letter, task in letters
        ]
    )
    audit.record_many(
        [
            audit.entry(
                principal,
                f"dead_letter.{target}",
                "dead_letter",
                letter.public_id,
                reason=reason,
                before={"status": DeadLetterStatus.OPEN},
                after={"status": target},
            )
            for letter, _ in letters
        ]
    )
