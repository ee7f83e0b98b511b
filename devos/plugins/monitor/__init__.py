"""Actions that watch: ``monitor.http.check``."""

from devos.plugins.monitor.http_check import http_check
from tasks_app.sdk import Plugin

plugin = Plugin(name="monitor", version="1", title="Monitoring", actions=[http_check])
