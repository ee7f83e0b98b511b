"""Jobs that were given up."""

from __future__ import annotations

from django.db import models
from django.db.models.fields.json import KT
from django.db.models.functions import Left

from tasks_app.domain.states import DeadLetterStatus
from tasks_app.models.base import Row, created_at_field, matches, rule
from tasks_app.models.job import Job
from tasks_app.models.organization import Organization
from tasks_app.models.task import Task


class DeadLetterJob(Row):
    """Never deleted by a verb: the state says what was done about it, by whom and why."""

    noun = "dead_letter"
    organization = models.ForeignKey(Organization, models.PROTECT, related_name="+", db_index=False)
    job = models.ForeignKey(Job, models.CASCADE, related_name="dead_letters")
    execution_id = models.UUIDField()
    action_id = models.CharField(max_length=200)
    error = models.JSONField()
    code = models.GeneratedField(
        expression=Left(KT("error__code"), 64), output_field=models.CharField(max_length=64, null=True), db_persist=True
    )
    fingerprint = models.CharField(max_length=64)
    status = models.CharField(max_length=16, default=DeadLetterStatus.OPEN)
    decided_by = models.CharField(max_length=96, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=500, blank=True, default="")
    replay_task_id = models.UUIDField(null=True, blank=True)
    created_at = created_at_field()

    class Meta:
        db_table = "dead_letter_jobs"
        indexes = [
            models.Index(fields=["organization", "status", "-id"], name="dead_letters_list"),
            models.Index(fields=["organization", "fingerprint", "-id"], name="dead_letters_groups"),
            models.Index(fields=["organization", "status", "fingerprint", "id"], name="dead_letters_by_kind"),
            models.Index(fields=["organization", "action_id", "-id"], name="dead_letters_by_action"),
            models.Index(fields=["organization", "code", "-id"], name="dead_letters_by_code"),
        ]
        constraints = [
            models.CheckConstraint(condition=rule(matches(*DeadLetterStatus)), name="dead_letters_status"),
        ]


class DeadLetterResult(models.Model):
    """What a bulk (its ``task``) did about one dead letter; written with the decision itself, so it also says where an
    interrupted bulk goes on. ``job_id`` is the job that runs now because of it."""

    task = models.ForeignKey(Task, models.CASCADE, related_name="+", db_index=False, db_constraint=False)
    dead_letter_id = models.UUIDField()
    outcome = models.CharField(max_length=16)
    code = models.CharField(max_length=64, blank=True, default="")
    message = models.CharField(max_length=1_000, blank=True, default="")
    job_id = models.UUIDField(null=True)
    created_at = created_at_field()

    class Meta:
        db_table = "dead_letter_results"
        indexes = [
            models.Index(fields=["task", "job_id"], name="dead_letter_results_jobs"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["task", "dead_letter_id"], name="dead_letter_results_once"),
            models.CheckConstraint(condition=rule("outcome ~ '^(done|refused)$'"), name="dead_letter_results_outcome"),
        ]
