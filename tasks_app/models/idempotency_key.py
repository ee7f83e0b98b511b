"""First answers, kept so that a repeated request gets the same one."""

from __future__ import annotations

from django.db import models

from tasks_app.models.base import created_at_field
from tasks_app.models.organization import Organization


class IdempotencyKey(models.Model):
    """One per caller and key. ``task_ids`` is what the first request created; the answer is made from it again."""

    id = models.BigAutoField(primary_key=True)
    organization = models.ForeignKey(Organization, models.CASCADE, related_name="+", db_index=False)
    owner = models.CharField(max_length=96)
    key = models.CharField(max_length=255)
    request_hash = models.CharField(max_length=64)
    task_ids = models.JSONField(default=list)
    created_at = created_at_field()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "idempotency_keys"
        constraints = [
            models.UniqueConstraint(fields=["organization", "owner", "key"], name="idempotency_keys_one_per_owner")
        ]
