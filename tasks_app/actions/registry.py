"""The actions this process knows. Plugins are loaded once, on first use; one that fails is reported, never fatal."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from django.conf import settings

from tasks_app.actions.definition import ActionDefinition
from tasks_app.actions.plugin import ENTRY_POINT_GROUP, Plugin
from tasks_app.domain.errors import DevosError

# By name: the actions are above this room.
_BUILT_IN = EntryPoint(name="platform", value="tasks_app.runtime.built_in:plugin", group=ENTRY_POINT_GROUP)


class ActionNotRegistered(DevosError):
    """No plugin that is loaded here brings this action."""

    code = "ACTION_NOT_REGISTERED"
    status = 404

    def __init__(self, action_id: str) -> None:
        super().__init__(f"There is no action {action_id[:200]!r}. `devos action list` shows those that are installed.")


@dataclass(frozen=True)
class LoadProblem:
    """A plugin that could not be loaded, and why."""

    plugin: str
    error: str


_lock = threading.RLock()
_actions: dict[str, ActionDefinition] = {}
_plugins: dict[str, Plugin] = {}
_problems: list[LoadProblem] = []
_loading = _loaded = False


def register(plugin: Plugin) -> None:
    """Add a plugin's actions. Raises ValueError when its name or one of its action ids is taken."""
    with _lock:
        if plugin.name in _plugins:
            raise ValueError(f"a plugin named {plugin.name!r} is loaded already")
        taken = [a.id for a in plugin.actions if a.id in _actions]
        if taken:
            raise ValueError(f"plugin {plugin.name!r} brings actions that exist already: {', '.join(taken)}")
        _plugins[plugin.name] = plugin
        _actions.update({a.id: a.model_copy(update={"plugin": plugin.name}) for a in plugin.actions})


def unregister(name: str) -> None:
    """Forget a plugin and its actions (for tests)."""
    with _lock:
        plugin = _plugins.pop(name)
        for definition in plugin.actions:
            _actions.pop(definition.id, None)


def load() -> None:
    """Load the plugins now, once; whoever asks meanwhile waits. A process that will fork while it has threads calls
    this first, so that no child inherits half of them."""
    global _loaded, _loading
    if _loaded:
        return
    with _lock:
        if _loading:  # a plugin that asks while it is being loaded, or another thread has done it meanwhile
            return
        _loading = True
        for entry in [_BUILT_IN, *entry_points(group=ENTRY_POINT_GROUP), *_named_in_settings()]:
            _load_one(entry)
        _loaded = True


def _named_in_settings() -> list[EntryPoint]:
    """Plugins of DEVOS_PLUGINS: ``module:attribute``, from the current directory too, so that a first try needs no
    package."""
    named = [text.strip() for text in settings.DEVOS.plugins.split(",") if text.strip()]
    if named and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    return [EntryPoint(name=text, value=text, group=ENTRY_POINT_GROUP) for text in named]


def _load_one(entry: EntryPoint) -> None:
    try:
        plugin = entry.load()
        if not isinstance(plugin, Plugin):
            raise TypeError(f"{entry.value} is not a Plugin")
        register(plugin)
    except Exception as error:  # noqa: BLE001 - a plugin is foreign code: whatever it raises must not stop the process
        _problems.append(LoadProblem(entry.name, f"{type(error).__name__}: {error}"))


def get(action_id: str) -> ActionDefinition:
    """The action, or `ActionNotRegistered`."""
    load()
    try:
        return _actions[action_id]
    except KeyError:
        raise ActionNotRegistered(action_id) from None


def all_actions() -> list[ActionDefinition]:
    """Every action, by id."""
    load()
    return [_actions[key] for key in sorted(_actions)]


def plugins() -> list[Plugin]:
    """Every loaded plugin, by name."""
    load()
    return [_plugins[key] for key in sorted(_plugins)]


def load_problems() -> list[LoadProblem]:
    """Plugins that could not be loaded."""
    load()
    return list(_problems)
