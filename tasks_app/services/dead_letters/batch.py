"""What a bulk decides about, and how it does one batch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from tasks_app.domain import ids
from tasks_app.domain.dead_letters import DeadLetterVerb
from tasks_app.domain.principal import Principal
from tasks_app.domain.states import DeadLetterStatus
from tasks_app.models import DeadLetterJob, DeadLetterResult
from tasks_app.queries.dead_letters import DeadLetterFilter
from tasks_app.queries.fields import made_between
from tasks_app.services import sql
from tasks_app.services.dead_letters.cancel import work as cancel_work
from tasks_app.services.dead_letters.decide import Decided, Work, decide, permit
from tasks_app.services.dead_letters.discard import work as discard_work
from tasks_app.services.dead_letters.replay import work as replay_work
from tasks_app.services.dead_letters.retry import work as retry_work
from tasks_app.services.dead_letters.spec import ACTION, BulkSpec

_WORK: dict[DeadLetterVerb, Work] = {
    DeadLetterVerb.RETRY: retry_work,
    DeadLetterVerb.REPLAY: replay_work,
    DeadLetterVerb.DISCARD: discard_work,
    DeadLetterVerb.CANCEL: cancel_work,
}


def matching(principal: Principal, spec: BulkSpec, asked_at: datetime | None = None) -> QuerySet[DeadLetterJob]:
    """The open letters that are meant. None given up since ``asked_at``: those are what a retry made anew."""
    if spec.ids is not None:
        chosen = [ids.from_text("dead_letter", one) for one in spec.ids]
        mine = DeadLetterJob.objects.filter(id__in=chosen, organization_id=principal.organization_id)
        return mine.filter(status=DeadLetterStatus.OPEN)
    given = spec.filter.model_dump(mode="json", exclude_unset=True) if spec.filter else {}
    every = DeadLetterFilter(**{**given, "status": [DeadLetterStatus.OPEN]}).queryset(principal)
    if "action" not in given:
        # Retrying whatever failed must not set a bulk going again that was stopped because it did harm.
        every = every.exclude(action_id=ACTION)
    return every.filter(made_between(None, asked_at))


def following(principal: Principal, spec: BulkSpec, asked_at: datetime, last: UUID | None, limit: int) -> list[UUID]:
    """The next letters of a bulk after ``last``, oldest first. Of a selection also those that will be refused."""
    if spec.ids is not None:
        chosen = sorted({ids.from_text("dead_letter", one) for one in spec.ids})
        return [one for one in chosen if last is None or one > last][:limit]
    rows = matching(principal, spec, asked_at)
    if last is not None:
        rows = rows.filter(id__gt=last)
    return list(rows.order_by("id").values_list("id", flat=True)[:limit])


def apply(principal: Principal, task_id: UUID, letter_ids: Sequence[UUID], spec: BulkSpec) -> list[Decided]:
    """Decide about one batch for the bulk ``task_id``, with a result a letter in the same commit.

    A refused letter holds up no other. Raises `PermissionDenied` when the caller may not decide so any more.
    """
    permit(principal, spec.verb)

    @transaction.atomic
    def once() -> list[Decided]:
        decided = decide(principal, letter_ids, spec.reason, _WORK[spec.verb])
        DeadLetterResult.objects.bulk_create(_result(task_id, one) for one in decided)
        return decided

    return sql.again_on_conflict(once)


def _result(task_id: UUID, one: Decided) -> DeadLetterResult:
    return DeadLetterResult(
        task_id=task_id,
        dead_letter_id=one.letter_id,
        outcome="refused" if one.error else "done",
        code=one.error.code if one.error else "",
        message=one.error.message[:1_000] if one.error else "",
        job_id=one.job_id,
    )
