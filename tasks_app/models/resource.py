"""Things that tasks are about: a website, a server, a repository."""

from __future__ import annotations

from django.db import models

from tasks_app.models.base import Row, created_at_field
from tasks_app.models.organization import Organization, Project


class Resource(Row):
    """``type`` is dotted (``seo.website``), ``key`` its natural name inside the organisation."""

    noun = "resource"
    organization = models.ForeignKey(Organization, models.PROTECT, related_name="resources")
    project = models.ForeignKey(Project, models.PROTECT, null=True, blank=True, related_name="resources")
    type = models.CharField(max_length=200)
    key = models.CharField(max_length=300)
    name = models.CharField(max_length=300, blank=True, default="")
    data = models.JSONField(default=dict)
    created_at = created_at_field()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "resources"
        constraints = [models.UniqueConstraint(fields=["organization", "type", "key"], name="resources_natural_key")]
