"""The verbs of tasks."""

from tasks_app.services.tasks.spec import ResourceRef, Submitted, TaskSpec
from tasks_app.services.tasks.submit import submit, submit_many

__all__ = ["ResourceRef", "Submitted", "TaskSpec", "submit", "submit_many"]
