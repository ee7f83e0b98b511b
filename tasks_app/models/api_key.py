"""Keys of programs. Only a hash is stored; the key itself is shown once, when it is made."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tasks_app.domain.principal import ROLES
from tasks_app.models.base import Row, created_at_field
from tasks_app.models.organization import Organization


class ApiKey(Row):
    """``prefix`` finds the row, ``key_hash`` (SHA-256 of a 256-bit random secret) proves it."""

    noun = "api_key"
    organization = models.ForeignKey(Organization, models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=200)
    prefix = models.CharField(max_length=16, unique=True)
    key_hash = models.CharField(max_length=64)
    role = models.CharField(max_length=16, choices=[(r, r) for r in ROLES], default="operator")
    scopes = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    created_by_type = models.CharField(max_length=16)
    created_by_id = models.CharField(max_length=64)
    created_at = created_at_field()

    class Meta:
        db_table = "api_keys"
        indexes = [models.Index(fields=["organization", "-id"], name="api_keys_list")]
        constraints = [models.CheckConstraint(condition=models.Q(role__in=ROLES), name="api_keys_role")]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
