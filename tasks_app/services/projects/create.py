"""Making a project."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from tasks_app.domain import ids
from tasks_app.domain.principal import Principal
from tasks_app.models import Project
from tasks_app.services import audit, events
from tasks_app.services.projects import rules


def create(principal: Principal, slug: str, name: str = "", description: str = "") -> Project:
    """A new project of the caller's organisation. Raises `InvalidInput`, `Conflict` when the slug is taken."""
    principal.require("projects.write")
    rules.check(slug, name or slug, description)
    row = Project(
        id=ids.new_id(),
        organization_id=principal.organization_id,
        slug=slug,
        name=name or slug,
        description=description,
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            after = {"slug": row.slug, "name": row.name, "description": row.description}
            audit.record(principal, "project.create", "project", row.public_id, after=after)
            events.publish(
                "project.created",
                organization_id=principal.organization_id,
                actor=principal.actor,
                correlation_id=principal.correlation_id or row.public_id,
                resource=("project", row.public_id),
                data=after,
            )
    except IntegrityError as error:
        raise rules.slug_taken(slug) from error
    return row
