"""Publishing events: a row in the transaction of what happened, and the end of the waits it fits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from tasks_app.domain import clock, ids, jsonsafe
from tasks_app.domain.errors import InvalidInput
from tasks_app.domain.principal import Actor, Principal
from tasks_app.domain.waits import KEY_MAX, PLATFORM_EVENTS, is_waited_for
from tasks_app.models import Event
from tasks_app.services.waits import ends, wake

_TYPE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")

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
    key: str = "",
) -> Event:
    """An event that is not written yet. ``key`` names which of many it is about, for those who wait for one.

    Raises `InvalidInput` when ``type`` is not dotted lower case such as ``website.created``, and for a key that is no
    text of at most 300 characters.
    """
    if not _TYPE.fullmatch(type) or len(type) > 200:
        raise InvalidInput(f"{type[:200]!r} is not an event type; use dotted lower case such as website.created")
    if len(key) > KEY_MAX or (problem := jsonsafe.text_problem(key)):
        problem = problem if len(key) <= KEY_MAX else f"must be at most {KEY_MAX} characters"
        raise InvalidInput(f"key: {problem}", [{"field": "key", "problem": problem}])
    return Event(
        type=type,
        timestamp=clock.now(),
        organization_id=organization_id,
        actor_type=actor.type,
        actor_id=actor.id,
        resource_type=resource[0] if resource else None,
        resource_id=resource[1] if resource else None,
        key=key if is_waited_for(type) else None,
        task_id=task_id,
        job_id=job_id,
        execution_id=execution_id,
        data=jsonsafe.clean({} if data is None else data),
        metadata=jsonsafe.clean(metadata or {}),
        correlation_id=correlation_id,
        causation_id=causation_id,
    )


def publish(type: str, *, using: str = "default", **about: Any) -> Event:
    """Write one event, and end the waits it fits in the same transaction (the caller's on ``using``, if there is one).

    Takes what `event` takes, and raises what it raises.
    """
    made = event(type, **about)
    made.save(using=using, force_insert=True)
    if is_waited_for(type):
        _end_waits(made, using)
    return made


def publish_many(made: Sequence[Event]) -> None:
    """Write events of the runtime itself made by `event`, in this order: one statement."""
    Event.objects.bulk_create(made)


def emit(
    principal: Principal,
    type: str,
    *,
    data: Any = None,
    resource: tuple[str, str] | None = None,
    key: str = "",
    correlation_id: str = "",
) -> Event:
    """An event from outside. Raises `PermissionDenied`, and `InvalidInput` also for a type of the runtime's own."""
    principal.require("events.write")
    if type.startswith(PLATFORM_EVENTS):
        problem = "begins like the events of the runtime itself; choose another first part"
        raise InvalidInput(f"type: {problem}", [{"field": "type", "problem": problem}])
    with transaction.atomic():
        return publish(
            type,
            organization_id=principal.organization_id,
            actor=principal.actor,
            correlation_id=correlation_id or principal.correlation_id or ids.to_text("event", ids.new_id()),
            data=data,
            resource=resource,
            key=key,
            metadata={"request_id": principal.request_id},
        )


def _end_waits(event: Event, using: str) -> None:
    ended: list[UUID] = []
    if connections[using].in_atomic_block:
        ended = ends.by_event(event, using, wait_for_locks=False)
    # A wait that was begun while the transaction was open saw neither the event nor was seen by it.
    wake.after_commit(lambda: wake.wake([*ended, *ends.by_event(event, using, wait_for_locks=True)]), using)
