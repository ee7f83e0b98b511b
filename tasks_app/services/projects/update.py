"""Changing a project."""

from __future__ import annotations

from uuid import UUID

from django.db import IntegrityError, transaction

from tasks_app.domain.errors import NotFound
from tasks_app.domain.principal import Principal
from tasks_app.models import Project
from tasks_app.services import audit, events
from tasks_app.services.projects import rules


def update(
    principal: Principal,
    project_id: UUID,
    *,
    slug: str | None = None,
    name: str | None = None,
    description: str | None = None,
) -> Project:
    """Change what is not None. Raises `NotFound`, `InvalidInput`, `Conflict` when the slug is taken."""
    principal.require("projects.write")
    rules.check(slug, name, description)
    wanted = {"slug": slug, "name": name, "description": description}
    try:
        with transaction.atomic():
            mine = Project.objects.select_for_update().filter(organization_id=principal.organization_id)
            row = mine.filter(id=project_id).first()
            if row is None:
                raise NotFound("project", project_id)
            after = {key: value for key, value in wanted.items() if value is not None and value != getattr(row, key)}
            if after:
                _write(principal, row, after)
    except IntegrityError as error:
        raise rules.slug_taken(slug or "") from error
    return row


def _write(principal: Principal, row: Project, after: dict[str, str]) -> None:
    before = {key: getattr(row, key) for key in after}
    for key, value in after.items():
        setattr(row, key, value)
    row.save(update_fields=list(after))
    audit.record(principal, "project.update", "project", row.public_id, before=before, after=after)
    events.publish(
        "project.updated",
        organization_id=principal.organization_id,
        actor=principal.actor,
        correlation_id=principal.correlation_id or row.public_id,
        resource=("project", row.public_id),
        data={"before": before, "after": after},
    )
