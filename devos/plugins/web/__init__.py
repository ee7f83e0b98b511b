"""Actions on websites: ``seo.website.scan``."""

from devos.plugins.web.scan import scan
from tasks_app.sdk import Plugin

plugin = Plugin(name="web", version="1", title="Websites", actions=[scan])
