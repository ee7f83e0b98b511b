"""The verbs of projects."""

from tasks_app.services.projects.create import create
from tasks_app.services.projects.update import update

__all__ = ["create", "update"]
