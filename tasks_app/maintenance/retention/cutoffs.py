"""How old what is over has to be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from tasks_app.domain import clock
from tasks_app.queries.fields import first_id_at

# SQL: the task or execution ``t`` ended before its time. What is not over has no end, so it never is.
EXPIRED = """coalesce(t.completed_at < case when t.status in ('completed', 'cancelled') then %(completed)s
  else %(failed)s end, false)"""


@dataclass(frozen=True)
class Cutoffs:
    """Instants before which things must have ended to be deleted; ``events``: happened, for events and log lines."""

    completed: datetime
    failed: datetime
    events: datetime

    @classmethod
    def now(cls) -> Cutoffs:
        """Those of the settings at this moment."""
        knobs, now = settings.DEVOS, clock.now()
        return cls(
            now - timedelta(days=knobs.keep_completed_d),
            now - timedelta(days=knobs.keep_failed_d),
            now - timedelta(days=knobs.keep_events_d),
        )

    @property
    def newest_id(self) -> UUID:
        """Everything that can be deleted was made before it ended, so it has a smaller id than this."""
        return first_id_at(max(self.completed, self.failed))

    @property
    def parameters(self) -> dict[str, Any]:
        return {"completed": self.completed, "failed": self.failed, "events": self.events, "bound": self.newest_id}
