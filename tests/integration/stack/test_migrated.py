"""A migration is left out only when nothing it depends on has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from devos.stack import migrated
from devos.stack.servers import Servers


@pytest.fixture
def url(home: Path, serve: Callable[..., Servers]) -> str:
    found = serve(home, valkey=False).database_url
    with psycopg.connect(found, autocommit=True) as connection:
        connection.execute("create table django_migrations (id int, app text, name text)")
        connection.execute("insert into django_migrations values (1, 'some', '0001')")
    return found


def test_never_migrated(home: Path, url: str) -> None:
    assert not migrated.is_current(home, url)


def test_nothing_has_changed(home: Path, url: str) -> None:
    migrated.remember(home, url)
    assert migrated.is_current(home, url)


def test_another_database_or_less_in_it(home: Path, url: str) -> None:
    migrated.remember(home, url)
    assert not migrated.is_current(home, url.replace("/devos?", "/postgres?"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("delete from django_migrations")
    assert not migrated.is_current(home, url)


def test_a_setting_has_changed(home: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    migrated.remember(home, url)
    monkeypatch.setenv("DEVOS_PLUGINS", "other:plugin")
    assert not migrated.is_current(home, url)


def test_a_source_file_has_changed(home: Path, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "app"
    package.mkdir()
    for name in ("__init__.py", "apps.py"):
        (package / name).touch()
    monkeypatch.setattr("devos.stack.migrated.devos.__file__", str(package / "__init__.py"))
    migrated.remember(home, url)
    assert migrated.is_current(home, url)
    (package / "setup.py").write_text("new = 1")
    assert not migrated.is_current(home, url)
