"""Reading API keys. The keys themselves are nowhere: only their hashes are."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import QuerySet

from tasks_app.domain.principal import Principal
from tasks_app.models import ApiKey
from tasks_app.queries.paging import NewestFirst, Page


class ApiKeyFilter(NewestFirst):
    noun: ClassVar[str] = "api_key"

    def narrow(self, principal: Principal) -> QuerySet[ApiKey]:
        # Who may make keys may see them; nobody else needs to know which programs have access.
        principal.require("api_keys.write")
        return ApiKey.objects.filter(organization_id=principal.organization_id)


def page(principal: Principal, query: ApiKeyFilter) -> Page[ApiKey]:
    """A page of the organisation's keys, the revoked ones too."""
    return query.page(query.narrow(principal))
