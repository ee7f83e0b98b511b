"""Concurrency slots and locks that running jobs hold."""

from __future__ import annotations

from django.db import models

from tasks_app.models.base import created_at_field


class Lease(models.Model):
    """Slot ``slot`` of ``key``, held by one execution until it ends or ``expires_at`` passes without renewal."""

    id = models.BigAutoField(primary_key=True)
    key = models.CharField(max_length=400)
    slot = models.PositiveIntegerField(default=0)
    execution_id = models.UUIDField(db_index=True)
    job_id = models.UUIDField()
    expires_at = models.DateTimeField(db_index=True)
    taken_at = created_at_field()

    class Meta:
        db_table = "leases"
        constraints = [models.UniqueConstraint(fields=["key", "slot"], name="leases_one_holder_per_slot")]
