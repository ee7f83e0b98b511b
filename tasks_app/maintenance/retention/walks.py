"""Walks: a table is gone through in the order of its keys, a batch a commit; the place is kept in a row.

The row is locked while a batch is worked on: of two pruners one works and the other finds it taken. A pruner that is
killed leaves the place where its last commit was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction

from tasks_app.domain import clock, faultpoints
from tasks_app.maintenance.retention.cutoffs import Cutoffs
from tasks_app.models import RetentionMark
from tasks_app.services import sql

# What was kept the first time (a live child, an open dead letter) is looked at again after this.
AGAIN_AFTER = timedelta(days=1)
_OTHERS_ARE_AT_IT_S = 0.02


@dataclass(frozen=True)
class Batch:
    """What one batch did: rows ``deleted``, the ``place`` to go on from, and whether it was the ``last``."""

    deleted: int
    place: str
    last: bool


@dataclass(frozen=True)
class Walk:
    """``batch(place, cutoffs)`` deletes what is due among the next rows after ``place`` (empty: from the beginning)."""

    name: str
    batch: Callable[[str, Cutoffs], Batch]

    def step(self) -> Batch | None:
        """One batch in one transaction; None when somebody else is at it."""
        return sql.again_on_conflict(self._step)

    @transaction.atomic(using=sql.RUNTIME)
    def _step(self) -> Batch | None:
        marks = RetentionMark.objects.using(sql.RUNTIME)
        mark = marks.select_for_update(skip_locked=True).filter(name=self.name).first()
        if mark is None:
            return None
        now = clock.now()
        if mark.begun_at <= now - AGAIN_AFTER:
            mark.place, mark.begun_at = "", now
        done = self.batch(mark.place, Cutoffs.now())
        mark.place = done.place
        mark.save(using=sql.RUNTIME)
        faultpoints.reach("retention.before_commit")
        return done

    def bite(self, seconds: float) -> int:
        """Batches for about ``seconds``; returns rows deleted."""
        until, deleted = time.monotonic() + seconds, 0
        while done := self.step():
            deleted += done.deleted
            if done.last or time.monotonic() >= until:
                break
        return deleted

    def whole(self) -> int:
        """From the beginning to the end, sharing the work with whoever else is at it; returns rows deleted."""
        self.prepare()
        RetentionMark.objects.using(sql.RUNTIME).filter(name=self.name).update(place="", begun_at=clock.now())
        deleted = 0
        while True:
            done = self.step()
            deleted += done.deleted if done else 0
            if done and done.last:
                return deleted
            if not (done and done.deleted):
                time.sleep(_OTHERS_ARE_AT_IT_S)

    def prepare(self) -> None:
        """Make the row that keeps the place."""
        marks = RetentionMark.objects.using(sql.RUNTIME)
        marks.bulk_create([RetentionMark(name=self.name, begun_at=clock.now())], ignore_conflicts=True)
