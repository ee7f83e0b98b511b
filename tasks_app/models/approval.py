"""Decisions of people that running work waits for."""

from __future__ import annotations

from django.db import models

from tasks_app.domain.principal import ROLES
from tasks_app.domain.waits import ApprovalState
from tasks_app.models.base import Row, created_at_field, rule, status_is
from tasks_app.models.job import Job
from tasks_app.models.job_step import JobStep
from tasks_app.models.organization import Organization
from tasks_app.models.task import Task


class Approval(Row):
    """Asked for by a wait (``step``) of a job; decided once, by somebody with ``role`` and ``permission``.

    The foreign keys are constraints of the database that delete along (migration 0005), so that history can be dropped
    by the set-based statements of retention.
    """

    noun = "approval"
    organization = models.ForeignKey(
        Organization, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    task = models.ForeignKey(Task, models.CASCADE, related_name="approvals", db_constraint=False)
    job = models.ForeignKey(Job, models.CASCADE, related_name="+", db_index=False, db_constraint=False)
    step = models.OneToOneField(JobStep, models.SET_NULL, null=True, related_name="approval", db_constraint=False)
    title = models.CharField(max_length=300)
    details = models.JSONField(null=True)
    role = models.CharField(max_length=16, choices=[(r, r) for r in ROLES[1:]], default="operator")
    permission = models.CharField(max_length=200, default="approvals.decide")
    status = models.CharField(max_length=16, choices=[(s, s) for s in ApprovalState], default=ApprovalState.OPEN)
    decided_by = models.CharField(max_length=96, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    comment = models.CharField(max_length=500, blank=True, default="")
    created_at = created_at_field()
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "approvals"
        indexes = [
            models.Index(fields=["organization", "-id"], name="approvals_list"),
            models.Index(fields=["organization", "status", "-id"], name="approvals_by_status"),
        ]
        constraints = [
            models.CheckConstraint(condition=status_is(*ApprovalState), name="approvals_status"),
            models.CheckConstraint(
                condition=rule("(status = 'open') = (decided_at is null)"), name="approvals_closed_has_end"
            ),
        ]

    def __str__(self) -> str:
        return self.title
