"""Pause a queue: nothing is claimed from it until it is resumed."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from tasks_app.domain import clock
from tasks_app.domain.errors import Conflict, InvalidInput, NotFound
from tasks_app.domain.principal import Principal
from tasks_app.models import Queue
from tasks_app.services import audit


@transaction.atomic
def pause(principal: Principal, name: str, reason: str, until: datetime | None = None) -> Queue:
    """Pause ``name``. ``until``: resumes by itself then. Raises `NotFound`, `Conflict` when paused, `InvalidInput`."""
    principal.require("queues.pause")
    if not reason.strip():
        raise InvalidInput("Say why the queue is paused.", [{"field": "reason", "problem": "required"}])
    if until is not None and until <= clock.now():
        raise InvalidInput("until must lie in the future.", [{"field": "until", "problem": "in the past"}])
    queue = Queue.objects.select_for_update().filter(name=name).first()
    if queue is None:
        raise NotFound("queue", name)
    if queue.paused_at:
        raise Conflict(f"The queue is paused already, by {queue.paused_by}: {queue.pause_reason}")
    queue.paused_at = clock.now()
    queue.paused_by = f"{principal.actor.type}:{principal.actor.id}"
    queue.pause_reason = reason
    queue.paused_until = until
    queue.save()
    audit.record(principal, "queue.pause", "queue", name, reason=reason, after={"until": until and until.isoformat()})
    return queue
