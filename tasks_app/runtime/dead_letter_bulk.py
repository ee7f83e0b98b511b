"""``core.dead_letters.apply``: the action behind a bulk decision about dead letters.

It keeps nothing in memory that matters: the results in the database say how far it is, so it goes on after a crash, a
deploy or a retry without deciding about a letter twice.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from pydantic import Field

from tasks_app.actions.definition import ActionOutput, action
from tasks_app.domain import ids
from tasks_app.domain.dead_letters import batch_size, rows_per_s
from tasks_app.domain.errors import ActionError
from tasks_app.domain.principal import Principal
from tasks_app.domain.retry import RetryPolicy
from tasks_app.models import Task
from tasks_app.queries import dead_letter_results as results
from tasks_app.queries.dead_letter_results import SoFar
from tasks_app.runtime.context import Context
from tasks_app.services import principals
from tasks_app.services.dead_letters import batch
from tasks_app.services.dead_letters.spec import ACTION, BulkSpec

BATCH_MAX = 100
_LOOK_EVERY_S = 0.2
_ASK_EVERY_S = 1.0


class BulkReport(ActionOutput):
    """What a bulk did. The results of single letters are at ``/api/dead-letters/bulk/{task}/results``."""

    done: int = Field(description="Letters decided about as asked.")
    refused: int = Field(description="Letters that were left as they were; their results say why.")


@action(
    ACTION,
    title="Decide about many dead letters",
    description="Retries, replays, discards or cancels dead letters: a selection, or all open ones that match a "
    "filter. Goes through them oldest first; can be cancelled half way, which leaves the rest untouched.",
    permission="dead_letters.write",
    timeout_s=86_400,
    retry=RetryPolicy(max_attempts=3),
    supports_pause=True,
)
def apply(ctx: Context, input: BulkSpec) -> BulkReport:
    """Decide batch by batch."""
    done = _Bulk.of(ctx, input).run()
    return BulkReport(done=done.done, refused=done.refused)


@dataclass
class _Bulk:
    ctx: Context
    spec: BulkSpec
    task: Task
    total: int

    @classmethod
    def of(cls, ctx: Context, spec: BulkSpec) -> _Bulk:
        task = Task.objects.only("id", "organization_id", "created_at").get(id=ids.from_text("task", ctx.task_id or ""))
        made = cls(ctx, spec, task, 0)
        so_far = results.so_far(task.id)
        left = batch.matching(made.principal(), spec, task.created_at).order_by().count()
        made.total = so_far.done + so_far.refused + left
        return made

    def principal(self) -> Principal:
        """The caller as they are now: who has lost the permission meanwhile decides about nothing more."""
        now = principals.of_actor(self.ctx.actor, self.task.organization_id)
        return replace(now, request_id=self.ctx.request_id)

    def run(self) -> SoFar:
        so_far = results.so_far(self.task.id)
        if self.spec.canary is not None:
            so_far = self._decide(so_far, "canary", until=self.spec.canary)
            # Kept as a step: whoever goes on with the rest must not wait for it as if it were the canary.
            self.ctx.step("canary", lambda: self._await_canary(so_far))
        return self._decide(so_far, "all" if self.spec.canary is None else "the rest", until=None)

    def _decide(self, so_far: SoFar, phase: str, until: int | None) -> SoFar:
        """Go on until there is no letter left, or ``until`` were decided about."""
        most, asked = batch_size(self.spec.rate, BATCH_MAX), time.monotonic()
        while True:
            self._tell(so_far, phase)
            count = so_far.done + so_far.refused
            limit = most if until is None else min(most, until - count)
            following = (
                batch.following(self.principal(), self.spec, self.asked_at, so_far.last, limit) if limit > 0 else []
            )
            if not following:
                return so_far
            began = time.monotonic()
            so_far = self._batch(so_far, following)
            if self.spec.stop_after is not None and began - asked >= _ASK_EVERY_S:
                self._check_repeats(self.spec.stop_after)
                asked = began
            if self.spec.rate:
                self._wait(began + len(following) / rows_per_s(self.spec.rate), so_far, phase)

    @property
    def asked_at(self) -> datetime:
        return self.task.created_at

    def _batch(self, so_far: SoFar, letter_ids: list[UUID]) -> SoFar:
        decided = batch.apply(self.principal(), self.task.id, letter_ids, self.spec)
        refused = sum(one.error is not None for one in decided)
        return SoFar(so_far.done + len(decided) - refused, so_far.refused + refused, letter_ids[-1])

    def _await_canary(self, so_far: SoFar) -> None:
        """Wait until what the canary started has ended, and stop when it failed again or takes too long."""
        allowed = self.spec.stop_after or 0
        deadline = time.monotonic() + self.spec.canary_wait_s
        while running := results.still_running(self.task.id):
            self._check_repeats(allowed)
            if time.monotonic() >= deadline:
                message = f"{running} of the canary had not ended after {self.spec.canary_wait_s:g} s. "
                raise ActionError("CANARY_UNDECIDED", message + "The rest was left untouched.", retryable=False)
            self._wait(time.monotonic() + _ASK_EVERY_S, so_far, "waiting for the canary")
        self._check_repeats(allowed)

    def _check_repeats(self, allowed: int) -> None:
        fingerprint, count = results.most_repeated(self.task.id)
        if count > allowed:
            message = f"{count} failed again in the same way (allowed: {allowed}). The rest was left untouched."
            details = {"fingerprint": fingerprint, "count": count}
            raise ActionError("FAILS_AGAIN", message, retryable=False, details=details)

    def _tell(self, so_far: SoFar, phase: str) -> None:
        """Say how far it is, and stop here when that was asked for."""
        count = so_far.done + so_far.refused
        said = f"{so_far.done} done, {so_far.refused} refused"
        self.ctx.progress(count, max(self.total, count), phase, said)
        self.ctx.pause_point({})

    def _wait(self, moment: float, so_far: SoFar, phase: str) -> None:
        while (left := moment - time.monotonic()) > 0:
            self._tell(so_far, phase)
            time.sleep(min(left, _LOOK_EVERY_S))
