"""The verbs of tasks."""

from tasks_app.services.tasks.cancel import cancel
from tasks_app.services.tasks.replay import replay
from tasks_app.services.tasks.reprioritise import reprioritise
from tasks_app.services.tasks.retry import retry
from tasks_app.services.tasks.spec import ResourceRef, Submitted, TaskSpec
from tasks_app.services.tasks.submit import submit, submit_many

__all__ = [
    "ResourceRef",
    "Submitted",
    "TaskSpec",
    "cancel",
    "replay",
    "reprioritise",
    "retry",
    "submit",
    "submit_many",
]
