"""Reading the actions that are installed. They are in memory, but listed like everything else."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from tasks_app.actions import registry
from tasks_app.actions.definition import ActionDefinition
from tasks_app.domain.principal import Principal
from tasks_app.queries.fields import ShortText
from tasks_app.queries.paging import ListQuery, Page, read_cursor, write_cursor

_TAG = "action.id.up"


class ActionFilter(ListQuery):
    noun: ClassVar[str] = "action"

    plugin: ShortText | None = None
    q: ShortText | None = Field(None, description="Part of the id or the title, in any case.")

    def fits(self, action: ActionDefinition) -> bool:
        wanted = (self.q or "").lower()
        named = wanted in action.id.lower() or wanted in action.title.lower()
        return named and (self.plugin is None or action.plugin == self.plugin)


def page(principal: Principal, query: ActionFilter) -> Page[ActionDefinition]:
    """A page of actions by id."""
    principal.require("actions.read")
    after = str(read_cursor(_TAG, query.cursor)) if query.cursor is not None else ""
    found = [action for action in registry.all_actions() if action.id > after and query.fits(action)]
    rows = found[: query.limit]
    return Page(rows, write_cursor(_TAG, rows[-1].id) if len(found) > query.limit else None)


def get(principal: Principal, action_id: str) -> ActionDefinition:
    """One action. Raises `ActionNotRegistered`."""
    principal.require("actions.read")
    return registry.get(action_id)
