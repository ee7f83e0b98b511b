"""Jobs that were given up."""

from __future__ import annotations

from django.db import models

from tasks_app.models.base import Row, created_at_field, matches, rule
from tasks_app.models.job import Job
from tasks_app.models.organization import Organization

DEAD_LETTER_STATES = ("open", "retried", "replayed", "discarded", "cancelled")


class DeadLetterJob(Row):
    """Never deleted by a verb: the state says what was done about it, by whom and why."""

    noun = "dead_letter"
    organization = models.ForeignKey(Organization, models.PROTECT, related_name="+", db_index=False)
    job = models.ForeignKey(Job, models.CASCADE, related_name="dead_letters")
    execution_id = models.UUIDField()
    action_id = models.CharField(max_length=200)
    error = models.JSONField()
    fingerprint = models.CharField(max_length=64)
    status = models.CharField(max_length=16, default="open")
    decided_by = models.CharField(max_length=96, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=500, blank=True, default="")
    created_at = created_at_field()

    class Meta:
        db_table = "dead_letter_jobs"
        indexes = [
            models.Index(fields=["organization", "status", "-id"], name="dead_letters_list"),
            models.Index(fields=["organization", "fingerprint", "-id"], name="dead_letters_groups"),
        ]
        constraints = [
            models.CheckConstraint(condition=rule(matches(*DEAD_LETTER_STATES)), name="dead_letters_status"),
        ]
