"""Fixtures for all tests. The servers themselves come from `tests.embedded`."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.platform import Platform


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything that needs the shared platform runs in one worker of xdist, so that it is started once."""
    for item in items:
        if "platform" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.acceptance)
            item.add_marker(pytest.mark.xdist_group("platform"))


@pytest.fixture(scope="session")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Generator[Platform]:
    """The platform shared by the acceptance tests of this run. Leave it working: children you kill come back."""
    plugin = {"DEVOS_PLUGINS": "tests.support.stubborn:plugin"}
    running = Platform(tmp_path_factory.mktemp("platform") / "home", "--no-first-task", **plugin)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def own_home(tmp_path: Path) -> Path:
    """A directory for a `Platform` that a test starts and stops itself."""
    return tmp_path / "home"
