"""Running the command inside the test's process, against the test's database."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from devos.cli import main
from tasks_app.services import setup


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
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> Iterator[Run]:
    """Run the command locally: no server, no key."""
    for name in ("DEVOS_SERVER", "DEVOS_KEY"):
        monkeypatch.delenv(name, raising=False)
    setup.ensure_defaults()
    levels = [(handler, handler.level) for handler in logging.getLogger().handlers]
    requests_logger = logging.getLogger("django.request")
    requests_level = requests_logger.level

    def command(*args: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        printed = capsys.readouterr()
        return Ran(int(ended.value.code or 0), printed.out, printed.err)

    yield command
    for handler, level in levels:
        handler.setLevel(level)
    requests_logger.setLevel(requests_level)
