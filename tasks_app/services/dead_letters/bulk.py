"""Bulk: many dead letters decided about by a task, which anybody can watch and stop."""

from __future__ import annotations

from tasks_app.domain.principal import Principal
from tasks_app.queries.paging import Count
from tasks_app.services.dead_letters.batch import matching
from tasks_app.services.dead_letters.decide import permit
from tasks_app.services.dead_letters.spec import ACTION, BulkSpec
from tasks_app.services.tasks.spec import Submitted, TaskSpec
from tasks_app.services.tasks.submit import submit

COUNT_MAX = 1_000_000


def bulk(principal: Principal, spec: BulkSpec, idempotency_key: str | None = None) -> tuple[TaskSpec, Submitted]:
    """Submit the task that decides about what ``spec`` means; returns what was asked of submit, and its answer.

    Raises `PermissionDenied`, `NotFound`, and what submit raises.
    """
    permit(principal, spec.verb)
    matching(principal, spec)
    value = spec.model_dump(mode="json", exclude_unset=True)
    wanted = TaskSpec(type=ACTION, input=value, name=f"Dead letters: {spec.verb} in bulk")
    return wanted, submit(principal, wanted, idempotency_key=idempotency_key)


def preview(principal: Principal, spec: BulkSpec) -> Count:
    """How many letters a bulk asked for now would decide about."""
    permit(principal, spec.verb)
    found = matching(principal, spec).order_by()[: COUNT_MAX + 1].count()
    return Count(min(found, COUNT_MAX), exact=found <= COUNT_MAX)
