"""`python -m devos.stack.servers`, the lock of a home, and servers that exist already."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from devos.stack import external, paths
from devos.stack.errors import StackError
from devos.stack.plan import Options, Plan
from devos.stack.servers import Servers, only_one

Serve = Callable[..., Servers]
COMMAND = [sys.executable, "-m", "devos.stack.servers", "--home"]
REPOSITORY = Path(__file__).parents[3]


def test_prints_addresses_and_stops_on_term(home: Path) -> None:
    running = subprocess.Popen([*COMMAND, str(home)], stdout=subprocess.PIPE, cwd=REPOSITORY)
    with running:
        assert running.stdout is not None
        printed = json.loads(running.stdout.readline())
        assert json.loads((home / "servers.json").read_text()) == printed
        assert external.check_postgres(printed["database_url"]).startswith("18.")
        external.check_redis(printed["redis_url"])
        second = subprocess.run([*COMMAND, str(home)], capture_output=True, text=True, cwd=REPOSITORY, check=False)
        assert second.returncode == 1
        assert f"already running in {home} (process {running.pid})" in second.stderr
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0
    assert not (home / "servers.json").exists()
    with pytest.raises(StackError):
        external.check_postgres(printed["database_url"])


def test_lock_is_free_again_after_use(home: Path) -> None:
    with only_one(home), pytest.raises(StackError, match="already running"), only_one(home):
        pass
    with only_one(home):
        pass


def test_home_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StackError, match="cannot be made"):
        paths.open_home(tmp_path / "file" / "home")


def test_parents_of_home_are_left_as_they_are(tmp_path: Path, serve: Serve) -> None:
    parent = tmp_path / "closed"
    parent.mkdir(mode=0o700)
    serve(paths.open_home(parent / "home"))
    assert parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense://x", "not a PostgreSQL URL"),
        ("postgresql://someone:sesame@127.0.0.1:1/db", "no connection"),
        ("postgresql://someone:sesame@/db?host=/nowhere", "no connection"),
    ],
)
def test_database_url_that_leads_nowhere(url: str, said: str) -> None:
    with pytest.raises(StackError, match=said) as raised:
        external.check_postgres(url)
    assert "DATABASE_URL" in str(raised.value)
    assert "sesame" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "said"), [("nonsense://x", "not a Redis URL"), ("redis://:sesame@127.0.0.1:1/0", "no connection")]
)
def test_redis_url_that_leads_nowhere(url: str, said: str) -> None:
    with pytest.raises(StackError, match=said) as raised:
        external.check_redis(url)
    assert "REDIS_URL" in str(raised.value)
    assert "sesame" not in str(raised.value)


def test_evicting_broker_is_warned_of(home: Path, serve: Serve) -> None:
    import redis

    url = serve(home, postgres=False).redis_url
    with redis.Redis.from_url(url) as valkey:
        valkey.config_set("maxmemory-policy", "allkeys-lru")
    assert "noeviction" in external.policy_warning(external.check_redis(url)[1])
    assert external.policy_warning("noeviction") == ""


def test_asked_for_port_that_is_taken(home: Path) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        with pytest.raises(StackError, match=f"Port {port}"):
            Plan(Options(home, port=port), "", "").web()
        # Not asked for: the next free one.
        assert paths.free_port(port) != port


def test_bytecode_goes_into_a_home_that_stays_private(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    use = f"bytecode.use_here(Path({str(home)!r}))"
    code = f"from pathlib import Path; from devos.stack import bytecode; {use}; import wave"
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", code], env=env, cwd=REPOSITORY, check=True)
    assert list((home / "bytecode").rglob("wave.*.pyc"))
    for folder in (home, home / "bytecode"):
        assert folder.stat().st_mode & 0o777 == 0o700
