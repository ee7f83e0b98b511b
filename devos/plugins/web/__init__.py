"""Actions on websites: ``seo.website.scan``. The plugin object is in `scan`."""

from typing import Any


def __getattr__(name: str) -> Any:
    # Not imported here: the sample site is in this package too, and starts without all that a scan needs.
    if name == "plugin":
        from devos.plugins.web.scan import plugin

        return plugin
    raise AttributeError(name)
