"""Actions that exist for a test only."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from tasks_app.actions import registry
from tasks_app.actions.definition import ActionDefinition
from tasks_app.actions.plugin import Plugin

_numbers = itertools.count()


@contextmanager
def registered(*actions: ActionDefinition) -> Iterator[None]:
    """The actions can be submitted and run in the block. Those of installed plugins always can."""
    registry.load()
    name = f"test-{next(_numbers)}"
    registry.register(Plugin(name, actions=list(actions)))
    try:
        yield
    finally:
        registry.unregister(name)
