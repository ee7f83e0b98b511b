"""Resume a paused queue, by hand or when its time has come."""

from __future__ import annotations

from django.db import transaction

from tasks_app.domain import clock
from tasks_app.domain.errors import Conflict, NotFound
from tasks_app.domain.principal import Principal
from tasks_app.models import Queue
from tasks_app.services import audit
from tasks_app.services.bells import ring_after_commit

_RUNNING = {"paused_at": None, "paused_by": "", "pause_reason": "", "paused_until": None}


@transaction.atomic
def resume(principal: Principal, name: str, reason: str = "") -> Queue:
    """Let workers claim from the queue again. Raises `NotFound`, and `Conflict` when it is not paused."""
    principal.require("queues.pause")
    queue = Queue.objects.select_for_update().filter(name=name).first()
    if queue is None:
        raise NotFound("queue", name)
    if not queue.paused_at:
        raise Conflict("The queue is not paused.")
    before = {"paused_by": queue.paused_by, "reason": queue.pause_reason}
    Queue.objects.filter(name=name).update(**_RUNNING)
    audit.record(principal, "queue.resume", "queue", name, reason=reason, before=before)
    ring_after_commit([name])
    queue.refresh_from_db()
    return queue


@transaction.atomic
def resume_due() -> int:
    """Resume queues whose pause has run out; returns how many."""
    due = Queue.objects.select_for_update(skip_locked=True).filter(paused_until__lte=clock.now())
    names = [queue.name for queue in due]
    Queue.objects.filter(name__in=names).update(**_RUNNING)
    ring_after_commit(names)
    return len(names)
