"""Directories of the stack: DEVOS_HOME, and short private places for sockets."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import sys
import tempfile
from pathlib import Path

from devos.stack.errors import StackError

# The kernel's limit for the path of a socket is 108 bytes with the closing NUL; macOS has 104.
SOCKET_PATH_MAX = 100


def open_home(home: Path) -> Path:
    """Make DEVOS_HOME (0700; parents are left as they are) and return its resolved path."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StackError(
            f"DEVOS_HOME {home} cannot be made: {error.strerror}. Set DEVOS_HOME to a place you own."
        ) from error
    home = home.resolve()
    if not os.access(home, os.W_OK | os.X_OK):
        raise StackError(f"DEVOS_HOME {home} is not writable for this user. Set DEVOS_HOME to a place you own.")
    return home


def short_name(home: Path) -> str:
    """A name for things of this home that live elsewhere: the same each time, another for each home."""
    return hashlib.sha256(str(home).encode()).hexdigest()[:12]


def socket_dir(home: Path, longest_name: str) -> Path:
    """A private directory in which a socket called ``longest_name`` has a path short enough."""
    inside = home / "run"
    if len(os.fsencode(inside / longest_name)) <= SOCKET_PATH_MAX:
        inside.mkdir(exist_ok=True, mode=0o700)
        return inside
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or "")
    if not (base.is_absolute() and base.is_dir() and os.access(base, os.W_OK)):
        base = Path(tempfile.gettempdir())
        if len(os.fsencode(base)) > 40:
            base = Path("/tmp")
    return private_dir(base / f"devos-{os.geteuid()}-{short_name(home)}")


def private_dir(path: Path) -> Path:
    """A directory only we can enter, made when missing. A stranger's directory of that name is refused."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        pass
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise StackError(f"{path} exists and is not a private directory of this user. Remove it and start again.")
    return path


def write_private(path: Path, text: str) -> None:
    """Write a file for our eyes only (0600), whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600, exist_ok=False)
    temporary.write_text(text)
    temporary.replace(path)


def port_is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(near: int = 0, host: str = "127.0.0.1") -> int:
    """A port nobody listens on: the first free one of the hundred from ``near`` on, else any."""
    for port in range(near, near + 100) if near else ():
        if port_is_free(port, host) and claim_port(port):
            return port
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


_claims: dict[int, int] = {}  # port -> file descriptor, which the kernel closes when we end


def claim_port(port: int) -> bool:
    """Claim a port among all DevOS of this machine, for as long as this process lives.

    Two that start at the same moment would both find it free, and each take the other's answers for its own. Only Linux
    has names that vanish with their process; elsewhere the answer is always yes.
    """
    if port in _claims or sys.platform != "linux":
        return True
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0devos-port-{port}")
    except OSError:
        claim.close()
        return False
    _claims[port] = claim.detach()
    return True
