"""The verbs of dead letters."""

from tasks_app.services.dead_letters.bulk import bulk, preview
from tasks_app.services.dead_letters.cancel import cancel
from tasks_app.services.dead_letters.decide import Decided
from tasks_app.services.dead_letters.discard import discard
from tasks_app.services.dead_letters.replay import replay
from tasks_app.services.dead_letters.retry import retry
from tasks_app.services.dead_letters.spec import BulkSpec

__all__ = ["BulkSpec", "Decided", "bulk", "cancel", "discard", "preview", "replay", "retry"]
