"""The audit: who did what to which object, written in the transaction of the deed."""

from __future__ import annotations

from typing import Any

from tasks_app.domain import clock
from tasks_app.domain.principal import Principal
from tasks_app.models import AuditEntry


def record(
    principal: Principal,
    verb: str,
    object_type: str,
    object_id: str,
    *,
    reason: str = "",
    before: Any = None,
    after: Any = None,
) -> AuditEntry:
    """Write one entry. ``verb`` is dotted (``task.cancel``); ``before`` and ``after`` are JSON of what changed."""
    return AuditEntry.objects.create(
        timestamp=clock.now(),
        organization_id=principal.organization_id,
        actor_type=principal.actor.type,
        actor_id=principal.actor.id,
        verb=verb,
        object_type=object_type,
        object_id=object_id,
        reason=reason,
        before=before,
        after=after,
        request_id=principal.request_id,
        address=principal.address,
    )
