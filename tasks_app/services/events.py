"""Publishing events: a row in the transaction of what happened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tasks_app.domain import clock, jsonsafe
from tasks_app.domain.errors import InvalidInput
from tasks_app.domain.principal import Actor
from tasks_app.models import Event

_TYPE = re.compile(r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$")

# For the statements of the hot path, which write their events themselves.
INSERT = """insert into events (id, type, organization_id, actor_type, actor_id, task_id, job_id, execution_id, data,
    correlation_id, causation_id)"""


def event(
    type: str,
    *,
    organization_id: UUID,
    actor: Actor,
    correlation_id: str,
    data: Any = None,
    causation_id: UUID | None = None,
    resource: tuple[str, str] | None = None,
    task_id: UUID | None = None,
    job_id: UUID | None = None,
    execution_id: UUID | None = None,
    metadata: Any = None,
) -> Event:
    """An event that is not written yet. Raises `InvalidInput` when ``type`` is not dotted lower case."""
    if not _TYPE.match(type) or len(type) > 200:
        raise InvalidInput(f"{type[:200]!r} is not an event type; use dotted lower case such as website.created")
    return Event(
        type=type,
        timestamp=clock.now(),
        organization_id=organization_id,
        actor_type=actor.type,
        actor_id=actor.id,
        resource_type=resource[0] if resource else None,
        resource_id=resource[1] if resource else None,
        task_id=task_id,
        job_id=job_id,
        execution_id=execution_id,
        data=jsonsafe.clean(data or {}),
        metadata=jsonsafe.clean(metadata or {}),
        correlation_id=correlation_id,
        causation_id=causation_id,
    )


def publish(type: str, **about: Any) -> Event:
    """Write one event; takes what `event` takes. Raises `InvalidInput` when ``type`` is not dotted lower case."""
    made = event(type, **about)
    made.save(force_insert=True)
    return made


def publish_many(made: Sequence[Event]) -> None:
    """Write events of `event`, in this order: one statement."""
    Event.objects.bulk_create(made)
