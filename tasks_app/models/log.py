"""Log lines. Those of executions are partitioned by month (migration 0002)."""

from __future__ import annotations

from django.db import models

from tasks_app.models.base import created_at_field
from tasks_app.models.task import Task

LEVELS = ("debug", "info", "warn", "error")


class ExecutionLog(models.Model):
    """A line an action wrote. ``id`` is a sequence, so it is also the order."""

    id = models.BigAutoField(primary_key=True)
    execution_id = models.UUIDField()
    level = models.CharField(max_length=5)
    message = models.TextField()
    metadata = models.JSONField(default=dict)
    timestamp = created_at_field()

    class Meta:
        db_table = "execution_logs"


class TaskLog(models.Model):
    """What the platform itself has to say about a task: why it was cancelled, rescued, given up."""

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE, related_name="logs", db_index=False)
    level = models.CharField(max_length=5)
    message = models.TextField()
    metadata = models.JSONField(default=dict)
    timestamp = created_at_field()

    class Meta:
        db_table = "task_logs"
        indexes = [models.Index(fields=["task", "id"], name="task_logs_of_task")]
        constraints = [models.CheckConstraint(condition=models.Q(level__in=LEVELS), name="task_logs_level")]
