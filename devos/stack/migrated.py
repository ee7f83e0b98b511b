"""Whether a migration could change anything: not when code, packages, settings and database are as the last left them.

To find out that nothing is to be done takes Django three seconds, during which nothing else can start.
"""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import psycopg

import devos
from devos.stack import paths

NAME = "migrated"
_APPLIED = "select md5(string_agg(app || '.' || name, ',' order by app, name)) from django_migrations"


def is_current(home: Path, database_url: str) -> bool:
    """Whether everything is as it was after the last migration from ``home``. When in doubt it is not."""
    try:
        return (home / NAME).read_text() == _state(database_url)
    except (OSError, psycopg.Error):
        return False


def remember(home: Path, database_url: str) -> None:
    """Note the state a migration has just left."""
    paths.write_private(home / NAME, _state(database_url))


def _state(database_url: str) -> str:
    with psycopg.connect(database_url, connect_timeout=10) as connection:
        [row] = connection.execute(_APPLIED).fetchall()
    digest = hashlib.sha256(database_url.encode())
    for part in (str(row[0]), *_settings(), *_packages(), *_code()):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def _settings() -> Iterator[str]:
    yield from (
        f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(("DEVOS_", "DJANGO_"))
    )


def _packages() -> Iterator[str]:
    """Name and version of everything installed beside us."""
    yield from sorted(path.name for path in Path(sysconfig.get_path("purelib")).glob("*.dist-info"))


def _code() -> Iterator[str]:
    """Every source file of our own apps: also what runs after a migration may have changed."""
    top = Path(devos.__file__).resolve().parent.parent
    for app in sorted(top.glob("*/apps.py")):
        for path in sorted(app.parent.rglob("*.py")):
            found = path.stat()
            yield f"{path} {found.st_size} {found.st_mtime_ns}"
