"""Children that are killed come back, and work goes on."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest
import requests

from tests.support.platform import Platform
from tests.support.waiting import until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(400)]


def echo_works(platform: Platform) -> bool:
    """One job through every part: web, database, broker, worker."""
    try:
        answer = platform.api("POST", "/api/tasks", json={"type": "core.echo", "input": {"value": 1}})
        if answer.status_code not in (200, 201, 202):
            return False
        task_id = answer.json()["id"]

        def done() -> bool:
            return platform.api("GET", f"/api/tasks/{task_id}").json().get("status") == "completed"

        return until(done, 40, "the job is completed")
    except requests.RequestException:
        return False


@pytest.mark.parametrize("child", ["web", "jobs", "system", "beat", "flower", "valkey", "postgres"])
def test_killed_child_comes_back(platform: Platform, child: str) -> None:
    old = platform.kill(child, signal.SIGKILL)
    platform.wait_restarted(child, old)
    until(lambda: echo_works(platform), 90, f"work is done again after {child} was killed")


def test_addresses_stay_over_restarts(platform: Platform) -> None:
    before = {name: value for name, value in platform.run.items() if name.endswith("url")}
    for child in ("web", "valkey"):
        platform.wait_restarted(child, platform.kill(child))
    assert {name: value for name, value in platform.run.items() if name.endswith("url")} == before
    until(lambda: echo_works(platform), 90, "work is done again")


def test_port_that_is_taken(own_home: Path) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        refused = Platform(own_home, DEVOS_PORT=str(port)).devos("up")
    assert refused.returncode == 1
    assert f"Port {port} (DEVOS_PORT) is taken" in refused.stderr
    assert not (own_home / "run.json").exists()


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none", "DATABASE_URL: no connection"),
        ("REDIS_URL", "redis://127.0.0.1:1/0", "REDIS_URL: no connection"),
        ("DEVOS_LEASE_S", "soon", "DEVOS_LEASE_S"),
        ("DEVOS_PORT", "http", "DEVOS_PORT"),
    ],
)
def test_environment_that_cannot_work(own_home: Path, variable: str, value: str, said: str) -> None:
    refused = Platform(own_home)
    refused.env[variable] = value
    answer = refused.devos("up")
    assert answer.returncode in (1, 2)
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr
