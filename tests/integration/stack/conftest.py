from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from devos.stack import paths
from devos.stack.servers import Servers


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return paths.open_home(tmp_path / "home")


@pytest.fixture
def serve() -> Generator[Callable[..., Servers]]:
    """Start servers in a home; they are stopped at the end of the test."""
    started: list[Servers] = []

    def start(home: Path, **which: bool) -> Servers:
        servers = Servers(home)
        started.append(servers)
        servers.start(**which)
        return servers

    yield start
    for servers in started:
        servers.stop()
