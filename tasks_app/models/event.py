"""What happened. Append-only and partitioned by month (migration 0002)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from tasks_app.models.base import Row, created_at_field


class Event(Row):
    """A fact. ``sequence`` orders events as they were written; ``causation_id`` is the event that led to this one.

    The creation event of a task carries the task's own id, and ``execution.started`` the execution's, so what they
    cause can name them without a look-up.

    ``key`` says which of many it is about, for whoever waits for one: "" when it does not say, None for what the
    runtime writes itself, which nobody waits for.
    """

    noun = "event"
    sequence = models.BigIntegerField(editable=False, db_default=0)
    type = models.CharField(max_length=200)
    version = models.PositiveSmallIntegerField(db_default=1)
    timestamp = created_at_field()
    organization = models.ForeignKey("tasks_app.Organization", models.DO_NOTHING, db_constraint=False, related_name="+")
    actor_type = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=64)
    resource_type = models.CharField(max_length=200, null=True, blank=True)
    resource_id = models.CharField(max_length=300, null=True, blank=True)
    task_id = models.UUIDField(null=True)
    job_id = models.UUIDField(null=True)
    execution_id = models.UUIDField(null=True)
    key = models.CharField(max_length=300, null=True, blank=True)
    data = models.JSONField(default=dict)
    metadata = models.JSONField(default=dict)
    correlation_id = models.CharField(max_length=128)
    causation_id = models.UUIDField(null=True)

    class Meta:
        db_table = "events"
        indexes = [
            models.Index(fields=["task_id", "sequence"], condition=Q(task_id__isnull=False), name="events_of_task"),
        ]
