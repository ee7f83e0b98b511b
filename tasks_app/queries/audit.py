"""Reading the audit."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import Q, QuerySet
from pydantic import Field

from tasks_app.domain.principal import Principal
from tasks_app.models import AuditEntry
from tasks_app.queries.fields import Instant, ShortText
from tasks_app.queries.paging import NewestFirst, Page


class AuditFilter(NewestFirst):
    noun: ClassVar[str] = "audit"

    verb: ShortText | None = Field(None, description="Like `task.cancel`.")
    object_type: ShortText | None = Field(None, description="Like `task`; with `object_id` it is quick.")
    object_id: ShortText | None = None
    actor_type: ShortText | None = None
    actor_id: ShortText | None = None
    created_after: Instant | None = Field(None, description="Written at this instant or later.")
    created_before: Instant | None = Field(None, description="Written before this instant.")

    def narrow(self, principal: Principal) -> QuerySet[AuditEntry]:
        principal.require("audit.read")
        found = AuditEntry.objects.filter(organization_id=principal.organization_id)
        if self.object_type is not None and self.object_id is not None:
            found = found.filter(object_type=self.object_type, object_id=self.object_id)
        return found

    def sieve(self) -> Q:
        tried = Q()
        for column in ("verb", "object_type", "object_id", "actor_type", "actor_id"):
            if (value := getattr(self, column)) is not None:
                tried &= Q(**{column: value})
        if self.created_after is not None:
            tried &= Q(timestamp__gte=self.created_after)
        if self.created_before is not None:
            tried &= Q(timestamp__lt=self.created_before)
        return tried


def page(principal: Principal, query: AuditFilter) -> Page[AuditEntry]:
    """A page of audit entries."""
    return query.page(query.narrow(principal))
