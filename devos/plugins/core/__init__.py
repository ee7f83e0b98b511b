"""Actions for trying the platform: echo, sleep, fail and the like."""

from devos.plugins.core.basic import echo, fail, noop, sleep
from devos.plugins.core.rough import crash, spin
from tasks_app.sdk import Plugin

plugin = Plugin(name="core", version="1", title="Basics", actions=[echo, noop, sleep, fail, spin, crash])
