"""Durable steps: what a job has done already and need not do again."""

from __future__ import annotations

from django.db import models

from tasks_app.models.base import created_at_field
from tasks_app.models.job import Job


class JobStep(models.Model):
    """The stored result of step ``name``, the ``ordinal``-th the action asked for."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(Job, models.CASCADE, related_name="steps", db_index=False)
    ordinal = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    output = models.JSONField(null=True)
    created_at = created_at_field()

    class Meta:
        db_table = "job_steps"
        constraints = [models.UniqueConstraint(fields=["job", "ordinal"], name="job_steps_one_per_ordinal")]
