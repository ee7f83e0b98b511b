"""Organisations, who belongs to them, and their projects."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from tasks_app.domain.principal import ROLES
from tasks_app.models.base import Row, created_at_field


class Organization(Row):
    """The boundary of everything: a query from a door never leaves one organisation."""

    noun = "organization"
    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=200)
    created_at = created_at_field()

    class Meta:
        db_table = "organizations"

    def __str__(self) -> str:
        return self.name


class Membership(Row):
    """A user's role in an organisation."""

    noun = "membership"
    organization = models.ForeignKey(Organization, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=[(r, r) for r in ROLES], default="viewer")
    created_at = created_at_field()

    class Meta:
        db_table = "memberships"
        constraints = [
            models.UniqueConstraint(fields=["organization", "user"], name="memberships_one_per_user"),
            models.CheckConstraint(condition=models.Q(role__in=ROLES), name="memberships_role"),
        ]


class Project(Row):
    """A named place for tasks inside an organisation."""

    noun = "project"
    organization = models.ForeignKey(Organization, models.PROTECT, related_name="projects")
    slug = models.SlugField(max_length=63)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    created_at = created_at_field()

    class Meta:
        db_table = "projects"
        constraints = [models.UniqueConstraint(fields=["organization", "slug"], name="projects_slug_per_organization")]

    def __str__(self) -> str:
        return self.name
