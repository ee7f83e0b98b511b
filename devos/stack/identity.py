"""Which user a server runs as. PostgreSQL refuses root, so root needs a second identity for it."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from devos.stack.errors import StackError

LAUNCH = Path(__file__).with_name("launch.py")
# A namespace needs only a name that exists; setuid wants an account nobody logs in with.
_ACCOUNTS = ("postgres", "daemon", "nobody")


@dataclass(frozen=True)
class Identity:
    """``kind`` is same, namespace or setuid; ``uid`` and ``gid`` are the user the program sees itself as."""

    kind: str = "same"
    uid: int = 0
    gid: int = 0

    def __str__(self) -> str:
        return self.kind if self.kind == "same" else f"{self.kind}:{self.uid}:{self.gid}"


SAME = Identity()


def _account() -> pwd.struct_passwd:
    for name in _ACCOUNTS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise StackError(
        "PostgreSQL does not run as root and there is no other account here to run it as. "
        "Start DevOS as an ordinary user, or set DATABASE_URL to a server that exists."
    )


@cache
def for_postgres() -> Identity:
    """The identity PostgreSQL runs under: ours, or for root a user namespace, or where that is refused an account."""
    if os.geteuid() != 0:
        return SAME
    account = _account()
    namespace = Identity("namespace", account.pw_uid, account.pw_gid)
    return namespace if _works(namespace) else setuid()


def setuid() -> Identity:
    """The identity of an existing account. Data and binaries then must be where that account may read them."""
    account = _account()
    return Identity("setuid", account.pw_uid, account.pw_gid)


def _works(identity: Identity) -> bool:
    """Try the identity once in a child: containers and chroots often refuse user namespaces."""
    true = next((path for path in ("/bin/true", "/usr/bin/true") if Path(path).exists()), None)
    if sys.platform != "linux" or true is None:
        return False
    command = [sys.executable, "-I", "-S", str(LAUNCH), str(os.getpid()), "9", str(identity), true]
    return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0
