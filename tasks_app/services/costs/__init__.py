"""The verb of costs."""

from tasks_app.services.costs.record import record

__all__ = ["record"]
