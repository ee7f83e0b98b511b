"""A plugin: what a package brings to DevOS, as one object found through the entry point group ``devos.plugins``."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks_app.actions.definition import ActionDefinition

ENTRY_POINT_GROUP = "devos.plugins"


@dataclass(frozen=True)
class Plugin:
    """``name`` is unique; ``actions`` are registered under it."""

    name: str
    version: str = "1"
    title: str = ""
    actions: list[ActionDefinition] = field(default_factory=list)
