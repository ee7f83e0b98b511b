"""The audit: who did what to which object, written in the transaction of the deed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tasks_app.domain import clock
from tasks_app.domain.principal import Principal
from tasks_app.models import AuditEntry


def entry(
    principal: Principal,
    verb: str,
    object_type: str,
    object_id: str,
    *,
    reason: str = "",
    before: Any = None,
    after: Any = None,
) -> AuditEntry:
    """An entry that is not written yet. ``verb`` is dotted (``task.cancel``); ``before`` and ``after`` are JSON of what
    changed."""
    return AuditEntry(
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


def record(principal: Principal, verb: str, object_type: str, object_id: str, **about: Any) -> AuditEntry:
    """Write one entry; takes what `entry` takes."""
    made = entry(principal, verb, object_type, object_id, **about)
    made.save(force_insert=True)
    return made


def record_many(made: Sequence[AuditEntry]) -> None:
    """Write entries of `entry`: one statement."""
    AuditEntry.objects.bulk_create(made)
