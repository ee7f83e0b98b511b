"""Plugins: found by entry point or by name; one that fails is reported and stops nobody."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pydantic import ValidationError

from tasks_app.actions import registry
from tasks_app.sdk import ActionInput, Context, Plugin, action


class Nothing(ActionInput):
    pass


@action("sample.nothing", permission="sample.run")
def nothing(ctx: Context, input: Nothing) -> None:
    """Does nothing."""


def test_what_ships_is_there_and_loads():
    ids = {one.id for one in registry.all_actions()}
    assert {"seo.website.scan", "net.http.request", "net.dns.check", "net.tls.check", "monitor.http.check"} <= ids
    assert {"core.echo", "core.sleep", "core.fail"} <= ids
    assert registry.load_problems() == []


def test_a_name_that_is_taken_is_refused():
    registry.register(Plugin("sample", actions=[nothing]))
    try:
        with pytest.raises(ValueError, match="loaded already"):
            registry.register(Plugin("sample"))
        with pytest.raises(ValueError, match=r"sample\.nothing"):
            registry.register(Plugin("other", actions=[nothing]))
    finally:
        registry.unregister("sample")
    with pytest.raises(registry.ActionNotRegistered, match="devos action list"):
        registry.get("sample.nothing")


@pytest.mark.parametrize(
    "options",
    [
        {"permission": "NoDots"},
        {"permission": "a.b", "modes": {"sync"}},
        {"permission": "a.b", "timeout_s": 0},
        {"permission": "a.b", "typo": 1},
        {"permission": "a.b", "queue": "Not A Queue"},
    ],
)
def test_a_wrong_option_shows_when_the_action_is_declared(options):
    with pytest.raises(ValidationError):
        action("sample.wrong", **options)(nothing.function)
    with pytest.raises(ValidationError):
        action("nodots", permission="a.b")(nothing.function)
    with pytest.raises(TypeError, match="pydantic model"):
        action("sample.wrong", permission="a.b")(lambda ctx, input: None)


def test_plugins_named_in_the_environment_and_one_that_breaks(tmp_path):
    (tmp_path / "hello.py").write_text(
        textwrap.dedent(
            """
            from tasks_app.sdk import ActionInput, Context, Plugin, action

            class Greet(ActionInput):
                name: str

            @action("hello.greet", permission="hello.greet")
            def greet(ctx: Context, input: Greet) -> str:
                return f"Hello, {input.name}"

            plugin = Plugin("hello", actions=[greet])
            """
        )
    )
    (tmp_path / "broken.py").write_text("raise RuntimeError('no')")
    program = (
        "import django; django.setup()\n"
        "from tasks_app.actions import registry\n"
        "print(registry.get('hello.greet').plugin, [p.plugin for p in registry.load_problems()])"
    )
    assert _printed_by(program, tmp_path, "broken:plugin, hello:plugin") == "hello ['broken:plugin']"


def test_a_thread_that_asks_while_plugins_load_waits_for_them(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import time; time.sleep(0.5); from tasks_app.sdk import Plugin; plugin = Plugin('slow')"
    )
    program = (
        "import django; django.setup()\n"
        "import threading, time\n"
        "from tasks_app.actions import registry\n"
        "first = threading.Thread(target=registry.load); first.start(); time.sleep(0.2)\n"
        "print([p.name for p in registry.plugins() if p.name == 'slow'], first.is_alive())"
    )
    assert _printed_by(program, tmp_path, "slow:plugin") == "['slow'] False"


def test_a_worker_knows_its_actions_before_it_forks(tmp_path):
    """A child forked while a thread of its parent loads them would inherit half."""
    program = (
        "from devos.celery import app\n"
        "from tasks_app.actions import registry\n"
        "from tasks_app.runtime.worker_steps import KeeperStep\n"
        "app.WorkController(concurrency=1)\n"
        "print('core.echo' in registry._actions)"
    )
    assert _printed_by(program, tmp_path) == "True"


def test_a_command_knows_the_actions_of_the_platform_that_runs(tmp_path):
    (tmp_path / "mine.py").write_text("from tasks_app.sdk import Plugin; plugin = Plugin('mine')")
    (tmp_path / "run.json").write_text('{"plugins": "mine:plugin"}')
    program = (
        "import django; django.setup()\n"
        "from tasks_app.actions import registry\n"
        "print('mine' in [p.name for p in registry.plugins()])"
    )
    assert _printed_by(program, tmp_path, None, DEVOS_HOME=str(tmp_path)) == "True"


def _printed_by(program: str, folder: Path, plugins: str | None = "", **more: str) -> str:
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "devos.settings", **more}
    env.pop("DEVOS_PLUGINS", None)
    if plugins is not None:
        env["DEVOS_PLUGINS"] = plugins
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
