"""`devos doctor`: what it finds, how it says so, and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

from devos.stack.servers import Servers

REPOSITORY = Path(__file__).parents[3]


def doctor(home: Path, **env: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code and the findings by check."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    done = subprocess.run(
        [sys.executable, "-m", "devos.cli", "doctor", "--json"],
        env={**kept, "DEVOS_HOME": str(home), **env},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    printed = json.loads(done.stdout)
    assert printed["ok"] is (done.returncode == 0)
    for one in printed["checks"]:
        assert set(one) == {"check", "level", "message", "hint"}
        assert one["level"] == "ok" or one["hint"], f"says what to do: {one}"
    return done.returncode, {one["check"]: one for one in printed["checks"]}


def test_before_the_first_start(tmp_path: Path) -> None:
    code, found = doctor(tmp_path / "none", DEVOS_LAESE_S="15")
    assert code == 0
    assert found["home"]["level"] == "warn"
    assert found["supervisor"]["level"] == "warn"
    assert found["unknown variables"]["level"] == "warn"
    assert "DEVOS_LAESE_S" in found["unknown variables"]["message"]
    for check in ("python", "venv", "postgres program", "valkey program", "settings"):
        assert found[check]["level"] == "ok", found[check]
    assert not (tmp_path / "none").exists() or not (tmp_path / "none" / "lock").exists()


def test_what_is_wrong_with_servers_and_files(home: Path, serve: Callable[..., Servers]) -> None:
    servers = serve(home)
    with redis.Redis.from_url(servers.redis_url) as valkey:
        valkey.config_set("maxmemory-policy", "volatile-lru")
    (home / "bootstrap.json").write_text("{}")
    (home / "bootstrap.json").chmod(0o644)
    (home / "run.json").write_text('{"pid": 1, "url": "http://127.0.0.1:1", "children": {"web": 1}}')
    code, found = doctor(home, DATABASE_URL=servers.database_url, REDIS_URL=servers.redis_url)
    assert code == 1
    assert "bootstrap.json" in found["home"]["message"] and found["home"]["level"] == "fail"
    assert found["home"]["hint"].startswith("chmod go-rwx")
    assert found["supervisor"]["level"] == "warn" and "was killed" in found["supervisor"]["message"]
    assert found["database"]["level"] == "ok" and "PostgreSQL 18" in found["database"]["message"]
    assert found["broker policy"]["level"] == "warn" and "noeviction" in found["broker policy"]["message"]
    assert found["clock"]["level"] == "ok"
    assert found["migrations"]["level"] == "fail" and "auth.0001_initial" in found["migrations"]["message"]
    assert "workers" not in found, "there is no table to look into"


def test_servers_that_are_not_there_and_a_knob_that_is_wrong(tmp_path: Path) -> None:
    code, found = doctor(
        tmp_path,
        DATABASE_URL="postgresql://x:sesame@127.0.0.1:1/x",
        REDIS_URL="redis://127.0.0.1:1",
        DEVOS_LEASE_S="soon",
    )
    assert code == 1
    for check in ("database", "broker", "settings"):
        assert found[check]["level"] == "fail", found
    assert "DEVOS_LEASE_S" in found["settings"]["message"]
    assert "sesame" not in str(found)
