"""The verbs of jobs. Those a worker uses (claim, finish, renew, ...) are imported from their own modules."""

from tasks_app.services.jobs.verbs import cancel, retry

__all__ = ["cancel", "retry"]
