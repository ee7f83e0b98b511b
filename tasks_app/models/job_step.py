"""Durable steps and waits: what a job has done already and need not do again, and what it waits for."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from tasks_app.domain.waits import StepKind, StepState
from tasks_app.models.base import created_at_field, rule
from tasks_app.models.job import Job


class JobStep(models.Model):
    """The ``ordinal``-th thing the action asked for: a step or spawn with its stored result, or a wait.

    An open wait has a deadline, by constraint. ``check_at``: when a sweep looks after it; set while it is open, or over
    and not yet known to the action. ``event_id``: the event that ended it, which no other wait of the job gets.
    """

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(Job, models.CASCADE, related_name="steps", db_index=False)
    ordinal = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, db_default=StepKind.STEP, default=StepKind.STEP)
    name = models.CharField(max_length=200)
    state = models.CharField(max_length=9, db_default=StepState.DONE, default=StepState.DONE)
    output = models.JSONField(null=True)
    created_at = created_at_field()
    organization_id = models.UUIDField(null=True)
    pattern = models.CharField(max_length=200, null=True)
    key = models.CharField(max_length=300, null=True)
    children = ArrayField(models.UUIDField(), null=True)
    deadline_at = models.DateTimeField(null=True)
    check_at = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    event_id = models.UUIDField(null=True)

    class Meta:
        db_table = "job_steps"
        indexes = [
            models.Index(fields=["check_at"], condition=Q(check_at__isnull=False), name="job_steps_to_check"),
            models.Index(
                fields=["organization_id", "pattern", "key"],
                condition=Q(state=StepState.OPEN, kind=StepKind.EVENT),
                name="job_steps_for_events",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["job", "ordinal"], name="job_steps_one_per_ordinal"),
            models.CheckConstraint(condition=Q(kind__in=list(StepKind)), name="job_steps_kind"),
            models.CheckConstraint(condition=Q(state__in=list(StepState)), name="job_steps_state"),
            models.CheckConstraint(
                condition=rule("state <> 'open' or (deadline_at is not null and check_at is not null)"),
                name="job_steps_open_has_deadline",
            ),
        ]
