"""The verbs of queues."""

from tasks_app.services.queues.pause import pause
from tasks_app.services.queues.resume import resume

__all__ = ["pause", "resume"]
