"""The actions of the runtime itself: its own long work goes the one road too."""

from __future__ import annotations

from tasks_app.actions.plugin import Plugin
from tasks_app.runtime import dead_letter_bulk

plugin = Plugin(name="platform", version="1", title="The platform itself", actions=[dead_letter_bulk.apply])
