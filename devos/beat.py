"""The clock's scheduler: django-celery-beat's, but it asks for changed entries every half minute, not at every tick."""

from __future__ import annotations

import time

from django_celery_beat.schedulers import DatabaseScheduler

_LOOK_FOR_CHANGES_EVERY_S = 30.0


class DevosScheduler(DatabaseScheduler):
    """The entries are a few fixed ticks: a query a second to see whether they changed is most of an idle system."""

    _looked_at = 0.0

    def schedule_changed(self) -> bool:
        """Whether somebody edited an entry, at most 30 s late."""
        if time.monotonic() - self._looked_at < _LOOK_FOR_CHANGES_EVERY_S:
            return False
        self._looked_at = time.monotonic()
        return super().schedule_changed()
