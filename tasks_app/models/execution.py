"""One attempt at running an action."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from tasks_app.domain.states import ExecutionStatus
from tasks_app.models.base import Row, created_at_field, sound
from tasks_app.models.job import Job
from tasks_app.models.organization import Organization

MODES = ("sync", "async", "stream")


class Execution(Row):
    """Written once when the attempt starts and sealed once when it ends.

    ``input`` is set only where there is no job (sync mode): a job's input never changes, so a copy in each attempt
    would say nothing new. Read it through `effective_input`.
    """

    noun = "execution"
    action_id = models.CharField(max_length=200)
    action_version = models.SmallIntegerField(null=True)
    organization = models.ForeignKey(
        Organization, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    task_id = models.UUIDField(null=True)
    job = models.ForeignKey(
        Job, models.CASCADE, null=True, related_name="executions", db_index=False, db_constraint=False
    )
    status = models.CharField(max_length=16, choices=[(s, s) for s in ExecutionStatus])
    mode = models.CharField(max_length=8, default="async")
    actor_type = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=64)
    attempt = models.IntegerField()
    max_attempts = models.SmallIntegerField()
    worker_id = models.UUIDField(null=True)
    input = models.JSONField(null=True)
    output = models.JSONField(null=True)
    error = models.JSONField(null=True)
    progress = models.JSONField(null=True)
    created_at = created_at_field()
    started_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    duration_ms = models.FloatField(null=True)
    correlation_id = models.CharField(max_length=128)
    interrupted = models.BooleanField(default=False)
    steps_reused = models.IntegerField(default=0)
    log_lines_dropped = models.IntegerField(default=0)

    class Meta:
        db_table = "executions"
        indexes = [
            models.Index(fields=["organization", "-id"], name="executions_list"),
            # For the lists of failed, cancelled and lost ones. Not on the status: an index on a column that changes
            # whenever an attempt ends would have PostgreSQL write a new entry into every index of the table.
            models.Index(
                fields=["organization", "-id"], condition=Q(error__isnull=False), name="executions_with_error"
            ),
            # Lost ones are few among those.
            models.Index(fields=["organization", "-id"], condition=Q(interrupted=True), name="executions_lost"),
            models.Index(fields=["organization", "action_id", "-id"], name="executions_of_action"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["job", "attempt"], condition=Q(job__isnull=False), name="executions_one_per_attempt"
            ),
            sound("executions", "status", "mode", "completed_at", "error"),
        ]

    @property
    def effective_input(self) -> object:
        """What the action was given."""
        return self.input if self.job is None else self.job.input
