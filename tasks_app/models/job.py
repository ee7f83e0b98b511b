"""What is queued and run."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from tasks_app.domain import clock
from tasks_app.domain.states import JobStatus
from tasks_app.models.base import Row, created_at_field, sound, status_is
from tasks_app.models.organization import Organization
from tasks_app.models.queue import Queue
from tasks_app.models.task import Task


class Job(Row):
    """One action to run for a task.

    Every unfinished job has an owner and a deadline, by constraint: *running* belongs to ``worker_id`` until
    ``lease_expires_at``; *queued* to its queue; *pending* and *retrying* to what ``blocked_by`` names, and a sweep
    looks again at ``available_at``.

    ``attempt`` counts executions and fences late writers; ``uncounted`` of them do not use up ``max_attempts``
    (interruptions, waits, hand-backs).
    """

    noun = "job"
    task = models.ForeignKey(Task, models.CASCADE, related_name="jobs", db_constraint=False)
    organization = models.ForeignKey(
        Organization, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    action_id = models.CharField(max_length=200)
    queue = models.ForeignKey(
        Queue, models.PROTECT, db_column="queue", related_name="+", db_index=False, db_constraint=False
    )
    status = models.CharField(max_length=16, choices=[(s, s) for s in JobStatus], default=JobStatus.QUEUED)
    priority = models.SmallIntegerField(default=0)
    attempt = models.IntegerField(default=0)
    max_attempts = models.SmallIntegerField(default=1)
    interruptions = models.SmallIntegerField(default=0)
    uncounted = models.IntegerField(default=0)
    available_at = models.DateTimeField(default=clock.now)
    created_at = created_at_field()
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    worker_id = models.UUIDField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    blocked_by = models.JSONField(null=True, blank=True)
    after = ArrayField(models.UUIDField(), default=list, blank=True)
    progress = models.JSONField(null=True, blank=True)
    checkpoint = models.JSONField(null=True, blank=True)
    input = models.JSONField(default=dict)
    output = models.JSONField(null=True, blank=True)
    error = models.JSONField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    pause_requested_at = models.DateTimeField(null=True, blank=True)
    lock_key = models.CharField(max_length=400, null=True, blank=True)
    concurrency_key = models.CharField(max_length=400, null=True, blank=True)

    class Meta:
        db_table = "jobs"
        indexes = [
            # The claim. Ordered by what only this index has, so that the planner cannot walk the primary key instead.
            models.Index(F("queue"), F("priority").desc(), F("id"), condition=status_is("queued"), name="jobs_ready"),
            models.Index(fields=["available_at"], condition=status_is("pending", "retrying"), name="jobs_waiting"),
            # Not on status = 'running': the planner would take that one, full of dead entries, for every guarded write.
            models.Index(fields=["lease_expires_at"], condition=Q(lease_expires_at__isnull=False), name="jobs_leased"),
            models.Index(fields=["organization", "-id"], name="jobs_list"),
            models.Index(
                fields=["organization", "status", "-id"],
                condition=status_is("pending", "retrying", "failed", "cancelled"),
                name="jobs_by_status",
            ),
        ]
        constraints = [
            sound(
                "jobs",
                "status",
                "priority",
                "max_attempts",
                "worker_id",
                "lease_expires_at",
                "blocked_by",
                "completed_at",
            )
        ]

    @property
    def counted_attempts(self) -> int:
        """Attempts that used up the budget of ``max_attempts``."""
        return self.attempt - self.uncounted
