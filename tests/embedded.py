"""pytest plugin: real servers for the tests, started once, before anything reads Django's settings.

Loaded by ``-p tests.embedded`` in addopts. Unless DATABASE_URL and REDIS_URL say otherwise, the controlling process
starts the embedded PostgreSQL and Valkey in a temporary DEVOS_HOME; the workers of xdist inherit the addresses.
pytest-django gives each worker its own database, this plugin its own Redis database number. `tests/unit` alone starts
nothing.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from devos.stack.servers import Servers

_started: list[Servers] = []
_home: list[Path] = []


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """A wrapper, because it runs before pytest-django loads the settings."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker:
        os.environ["REDIS_URL"] = _numbered(os.environ.get("REDIS_URL", ""), int(worker.removeprefix("gw")) + 1)
    else:
        _prepare(early_config)
    return (yield)


def _prepare(config: pytest.Config) -> None:
    options = config.known_args_namespace
    # Also when pytest gives up before it is configured.
    atexit.register(pytest_unconfigure)
    home = Path(tempfile.mkdtemp(prefix="devos-test-")).resolve()
    _home.append(home)
    os.environ["DEVOS_HOME"] = str(home)
    if options.help or options.version or _only_unit(config, options.file_or_dir):
        return
    servers = Servers(home)
    _started.append(servers)
    servers.start(postgres="DATABASE_URL" not in os.environ, valkey="REDIS_URL" not in os.environ)
    if servers.database_url:
        os.environ["DATABASE_URL"] = servers.database_url
    if servers.redis_url:
        os.environ["REDIS_URL"] = servers.redis_url


def _only_unit(config: pytest.Config, selected: list[str]) -> bool:
    unit = (config.rootpath / "tests" / "unit").resolve()
    paths = [Path(config.invocation_params.dir, name.partition("::")[0]).resolve() for name in selected]
    return bool(paths) and all(path == unit or unit in path.parents for path in paths)


def _numbered(url: str, number: int) -> str:
    """``url`` with the database number moved by ``number``, so that no two workers share a broker."""
    if not url:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"/{int(parts.path.strip('/') or 0) + number}"))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """End what `_prepare` began."""
    while _started:
        _started.pop().stop()
    while _home:
        shutil.rmtree(_home.pop(), ignore_errors=True)
