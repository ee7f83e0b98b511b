"""The checks of `devos doctor` that look at this machine: Python, programs, DEVOS_HOME, the environment."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from devos.stack import binaries, process, runfile
from devos.stack.errors import StackError
from devos.stack.findings import Finding, fail, ok, warn

DISK_WARN_BYTES = 2 * 1024**3
DISK_FAIL_BYTES = 256 * 1024**2
SECRET_FILES = ("bootstrap.json", "run.json", "secret_key", "flower_login", "valkey/valkey.conf")


def python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield ok("python", f"Python {version}")
    if sys.prefix == sys.base_prefix:
        yield warn("venv", "not running in a virtual environment", "Run `make venv` and use .venv/bin/devos.")
    else:
        yield ok("venv", sys.prefix)


def programs() -> Iterator[Finding]:
    """The embedded servers start on this machine, where they are needed."""
    yield from _program("postgres program", "DATABASE_URL", lambda: binaries.postgres_bin() / "postgres")
    yield from _program("valkey program", "REDIS_URL", binaries.valkey_server)


def _program(check: str, variable: str, find: Callable[[], Path]) -> Iterator[Finding]:
    if os.environ.get(variable):
        yield ok(check, f"not needed: {variable} is set")
        return
    try:
        path = find()
    except StackError as error:
        yield fail(check, str(error), "")
        return
    try:
        shown = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
        works, text = shown.returncode == 0, (shown.stdout or shown.stderr).strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        works, text = False, str(error)
    if works:
        yield ok(check, text.splitlines()[0][:80])
    else:
        yield fail(check, f"{path} does not run here: {text}", f"Set {variable} to a server that exists.")


def environment() -> Iterator[Finding]:
    """Values of knobs, and variables that look like knobs and are none."""
    from devos.conf import ConfError, load, unknown

    try:
        load(os.environ)
    except ConfError as error:
        yield fail("settings", str(error), "Correct or unset the variables named here.")
    else:
        yield ok("settings", "every DEVOS_ variable has a usable value")
    names = unknown(os.environ)
    if names:
        hint = "Probably a typing error: docs/reference/settings.md lists the names."
        yield warn("unknown variables", f"nothing reads {', '.join(names)}", hint)


def home(folder: Path) -> Iterator[Finding]:
    if not folder.exists():
        yield warn("home", f"{folder} does not exist yet", "Start once with `make up`, or set DEVOS_HOME.")
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        yield fail("home", f"{folder} is not writable for this user", "Run as its owner, or set DEVOS_HOME.")
        return
    open_to_others = [name for name in SECRET_FILES if _open_to_others(folder / name)]
    if open_to_others:
        shown = ", ".join(str(folder / name) for name in open_to_others)
        yield fail("home", f"others may read {shown}", f"chmod go-rwx {shown}")
    elif _open_to_others(folder):
        yield warn("home", f"others may look into {folder}; the secrets in it are closed", f"chmod go-rwx {folder}")
    else:
        yield ok("home", f"{folder} is private")
    free = shutil.disk_usage(folder).free
    text = f"{free / 1024**3:.1f} GiB free under {folder}"
    if free < DISK_FAIL_BYTES:
        yield fail("disk", text, "PostgreSQL stops when the disk is full: make room now.")
    elif free < DISK_WARN_BYTES:
        yield warn("disk", text, "Make room, or shorten the retention of finished tasks.")
    else:
        yield ok("disk", text)


def _open_to_others(path: Path) -> bool:
    return path.exists() and bool(stat.S_IMODE(path.stat().st_mode) & 0o077)


def running(folder: Path) -> Iterator[Finding]:
    """Whether `devos up` runs here, and whether its files say the same as its lock."""
    held, facts = lock_is_held(folder), runfile.read(folder)
    if held and not facts:
        yield warn("supervisor", "is starting or stopping", "Wait for READY and ask again.")
    elif held:
        yield ok("supervisor", f"runs as process {facts.get('pid')} at {facts.get('url')}")
        yield from _children(facts.get("children") or {})
    elif facts:
        hint = "`make up` cleans up after it. Until then commands reach for servers that may be gone."
        yield warn("supervisor", f"was killed: {folder / runfile.NAME} is left of process {facts.get('pid')}", hint)
    elif os.environ.get("DATABASE_URL") and os.environ.get("REDIS_URL"):
        yield ok("supervisor", "none here; DATABASE_URL and REDIS_URL are set")
    else:
        yield warn("supervisor", "nothing runs", "Start it with `make up`.")


def _children(children: dict[str, int]) -> Iterator[Finding]:
    dead = sorted(name for name, pid in children.items() if not process.alive(pid))
    if dead:
        hint = "The supervisor starts it again by itself; its last lines say why it ended."
        yield warn("children", f"not running now: {', '.join(dead)}", hint)
    else:
        yield ok("children", ", ".join(sorted(children)))


def lock_is_held(folder: Path) -> bool:
    """Whether a supervisor holds the lock of this home. Looks only, and leaves it as it is."""
    try:
        with (folder / "lock").open("r") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    except OSError:
        pass
    return False
