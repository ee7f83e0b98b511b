"""Who did what. Append-only: a trigger refuses every update and delete (migration 0002)."""

from __future__ import annotations

from django.db import models

from tasks_app.models.base import Row, created_at_field


class AuditEntry(Row):
    """Actors and objects are plain text, so that an entry outlives the user, key or task it names."""

    noun = "audit"
    timestamp = created_at_field()
    organization_id = models.UUIDField(null=True)
    actor_type = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=64)
    verb = models.CharField(max_length=64)
    object_type = models.CharField(max_length=32)
    object_id = models.CharField(max_length=96)
    reason = models.CharField(max_length=500, blank=True, default="")
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    request_id = models.CharField(max_length=64, blank=True, default="")
    address = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        db_table = "audit_entries"
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["organization_id", "-id"], name="audit_list"),
            models.Index(fields=["object_type", "object_id", "-id"], name="audit_of_object"),
        ]
