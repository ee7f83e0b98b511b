"""What holds for every action that ships, and the sample site as a process."""

import os
import signal
import socket
import subprocess
import sys
import time
from types import ModuleType

import pytest
import requests

from devos.plugins import core, monitor, net, web
from devos.plugins.web.sample_site import __main__ as sample_site_main
from docs import generate
from tasks_app.runtime import built_in
from tasks_app.testing import run_action

PLUGINS = [core.plugin, net.plugin, web.plugin, monitor.plugin, built_in.plugin]
ACTIONS = [action for plugin in PLUGINS for action in plugin.actions]


def test_the_actions_that_ship():
    assert {action.id for action in ACTIONS} == {
        *("core.echo", "core.noop", "core.sleep", "core.fail", "core.spin", "core.crash"),
        *("net.http.request", "net.dns.check", "net.tls.check", "monitor.http.check", "seo.website.scan"),
        "core.dead_letters.apply",
    }


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_action_explains_itself(action):
    assert action.title != action.id
    assert len(action.description) > 20
    schema = action.input_schema()
    assert schema["additionalProperties"] is False
    for name, field in schema.get("properties", {}).items():
        assert field.get("description"), f"{action.id}: {name} has no description"
    if action.output_model:
        assert action.output_schema()["type"] == "object"


def wait_until_it_serves(url, process):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        assert process.poll() is None, "the sample site ended"
        try:
            return requests.get(url, timeout=1)
        except requests.ConnectionError:
            time.sleep(0.05)
    raise AssertionError("the sample site does not answer")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def command(port):
    return [sys.executable, "-m", "devos.plugins.web.sample_site", "--port", str(port)]


def test_the_sample_site_is_quiet_and_stops_on_term():
    port = free_port()
    process = subprocess.Popen(command(port), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert "Harbour" in wait_until_it_serves(f"http://127.0.0.1:{port}/", process).text
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=10)
        assert (process.returncode, said) == (0, b"")
    finally:
        process.kill()
        process.wait()


def test_the_sample_site_ends_with_its_parent():
    port = free_port()
    starts_child = "import subprocess,sys;print(subprocess.Popen(sys.argv[1:]).pid,flush=True);input()"
    parent = subprocess.Popen(
        [sys.executable, "-c", starts_child, *command(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    child = int(parent.stdout.readline())
    try:
        wait_until_it_serves(f"http://127.0.0.1:{port}/", parent)
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and serves(port):
            time.sleep(0.05)
        assert not serves(port)
    finally:
        for stream in (parent.stdin, parent.stdout):
            stream.close()
        if serves(port):
            os.kill(child, signal.SIGKILL)


def serves(port):
    with socket.socket() as knock:
        return knock.connect_ex(("127.0.0.1", port)) == 0


def test_the_sample_site_says_when_its_port_is_taken(monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr(sys, "argv", command(listener.getsockname()[1])[2:])
        with pytest.raises(SystemExit) as ended:
            sample_site_main.main()
    assert ended.value.code == 2
    assert "cannot listen" in capsys.readouterr().err


def test_the_reference_is_what_the_actions_say():
    """Run `python docs/generate.py` when this fails."""
    assert generate.TARGET.read_text() == generate.page()


def test_the_first_action_of_the_how_to_works():
    text = (generate.TARGET.parents[1] / "how-to" / "write-an-action.md").read_text()
    module = ModuleType("how_to_write_an_action")
    exec(text.partition("```python\n")[2].partition("```")[0], module.__dict__)
    assert run_action(module.plugin.actions[0], {"name": "Ada"}).text == "Hello, Ada"
