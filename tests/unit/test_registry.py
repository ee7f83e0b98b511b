"""Plugins: found by entry point or by name; one that fails is reported and stops nobody."""

import subprocess
import sys
import textwrap

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
    import os

    env = {**os.environ, "DEVOS_PLUGINS": "broken:plugin, hello:plugin", "DJANGO_SETTINGS_MODULE": "devos.settings"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.stdout.strip() == "hello ['broken:plugin']", done.stderr
