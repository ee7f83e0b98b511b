"""Running the command against a platform on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from devos.cli import main
from tests.unit.cli.loopback import KEY, Platform


@dataclass
class Ran:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def server() -> Iterator[Platform]:
    running = Platform()
    yield running
    running.stop()


@pytest.fixture
def bare(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command with nothing in its environment."""
    for name in ("DEVOS_SERVER", "DEVOS_KEY", "DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)

    def run(*args: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        printed = capsys.readouterr()
        return Ran(int(ended.value.code or 0), printed.out, printed.err)

    return run


@pytest.fixture
def run(bare: Run, server: Platform, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command against the loopback platform."""
    monkeypatch.setenv("DEVOS_SERVER", server.url)
    monkeypatch.setenv("DEVOS_KEY", KEY)
    return bare
