"""Events as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from tasks_app.api.represent.common import ActorOut, Json, LogOut, Out, ResourceOut, public, resource_out
from tasks_app.models import Event


class EventOut(Out):
    id: str
    sequence: int
    type: str
    version: int
    timestamp: datetime
    actor: ActorOut
    resource: ResourceOut | None
    key: str | None = Field(description="Which of many it is about. None: an event of the runtime itself.")
    task_id: str | None
    job_id: str | None
    execution_id: str | None
    data: Json
    metadata: Json
    correlation_id: str
    causation_id: str | None


class EventList(Out):
    results: list[EventOut]
    next: str | None


class LogList(Out):
    results: list[LogOut]
    next: str | None


def event_out(event: Event) -> EventOut:
    return EventOut(
        id=event.public_id,
        sequence=event.sequence,
        type=event.type,
        version=event.version,
        timestamp=event.timestamp,
        actor=ActorOut(type=event.actor_type, id=event.actor_id),
        resource=resource_out(event.resource_type, event.resource_id),
        key=event.key,
        task_id=public("task", event.task_id),
        job_id=public("job", event.job_id),
        execution_id=public("execution", event.execution_id),
        data=event.data,
        metadata=event.metadata,
        correlation_id=event.correlation_id,
        causation_id=public("event", event.causation_id),
    )
