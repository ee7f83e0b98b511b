"""The verbs of approvals."""

from tasks_app.services.approvals.decide import approve, reject

__all__ = ["approve", "reject"]
