"""The embedded Valkey: password, policy, port, and what it survives."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from devos.stack import external
from devos.stack.servers import Servers
from tests.support.waiting import until

Serve = Callable[..., Servers]


def client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, decode_responses=True)


def test_policy_persistence_and_address(home: Path, serve: Serve) -> None:
    url = serve(home, postgres=False).redis_url
    with client(url) as valkey:
        wanted = {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec", "bind": "127.0.0.1"}
        assert {name: valkey.config_get(name)[name] for name in wanted} == wanted
    assert external.check_redis(url)[1] == "noeviction"
    assert urlsplit(url).port not in (None, 6379)


def test_password_is_needed_and_not_in_the_arguments(home: Path, serve: Serve) -> None:
    servers = serve(home, postgres=False)
    parts = urlsplit(servers.redis_url)
    with redis.Redis(host="127.0.0.1", port=parts.port or 0) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    shown = Path(f"/proc/{servers.running[0][0].pid}/cmdline").read_bytes()
    assert parts.password and parts.password.encode() not in shown
    assert (home / "valkey" / "valkey.conf").stat().st_mode & 0o077 == 0


def test_address_and_data_survive_a_stop_and_a_kill(home: Path, serve: Serve) -> None:
    first = serve(home, postgres=False)
    with client(first.redis_url) as valkey:
        valkey.set("kept", "1")
    first.stop()
    second = serve(home, postgres=False)
    with client(second.redis_url) as valkey:
        assert valkey.get("kept") == "1"
    second.running[0][0].kill()
    second.running[0][0].wait()
    third = serve(home, postgres=False)
    assert first.redis_url == second.redis_url == third.redis_url
    with client(third.redis_url) as valkey:
        assert valkey.get("kept") == "1"


def test_port_that_was_taken_meanwhile(home: Path, serve: Serve) -> None:
    first = serve(home, postgres=False)
    port = urlsplit(first.redis_url).port or 0
    first.stop()
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        second = serve(home, postgres=False)
    assert urlsplit(second.redis_url).port != port
    with client(second.redis_url) as valkey:
        assert valkey.ping()


def test_server_left_by_a_killed_start_is_ended(home: Path, serve: Serve) -> None:
    left = serve(home, postgres=False)
    child, _ = left.running[0]
    with client(serve(home, postgres=False).redis_url) as valkey:
        assert valkey.ping()
    until(lambda: child.poll() is not None, 10, "the server that was left has ended")
    left.running.clear()


def test_pid_file_that_names_a_strangers_process(home: Path, serve: Serve) -> None:
    import os

    serve(home, postgres=False).stop()
    (home / "valkey" / "pid").write_text(str(os.getppid()))
    with client(serve(home, postgres=False).redis_url) as valkey:
        assert valkey.ping()
