"""The embedded Valkey (Redis protocol) of one DEVOS_HOME: 127.0.0.1, a free port, a generated password."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from pathlib import Path

import redis

from devos.stack import binaries, paths, process
from devos.stack.errors import StackError
from devos.stack.process import Command

START_TIMEOUT_S = 60.0
STOP = ((signal.SIGTERM, 10.0),)

# The password is in the file and not in the arguments, which every user of the machine can read.
_SETTINGS = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir "{folder}"
pidfile "{folder}/pid"
databases 64
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
daemonize no
loglevel warning
logfile ""
"""


class Valkey:
    """The server of ``home``. Order of use: `prepare`, start `command` with `process.start`, `wait_ready`."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "valkey"
        self.settings = self.folder / "valkey.conf"
        self.port = 0
        self.password = ""

    @property
    def url(self) -> str:
        """How redis-py and kombu connect."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def command(self) -> Command:
        """The server as a child of ours."""
        argv = [str(binaries.valkey_server()), str(self.settings)]
        return Command("valkey", argv, dict(os.environ), STOP, signal.SIGTERM, cwd=self.folder)

    def prepare(self) -> None:
        """End what an earlier run left; keep its port and password where they are still good; write the settings."""
        self.folder.mkdir(exist_ok=True, mode=0o700)
        known = self._known()
        self._end_leftover()
        self.password = known.get("requirepass") or secrets.token_urlsafe(24)
        self.choose_port(int(known.get("port", 0)))

    def choose_port(self, wanted: int = 0) -> None:
        """Take ``wanted`` when it is free, else any free port, and write the settings for it."""
        self.port = wanted if wanted and paths.port_is_free(wanted) else paths.free_port()
        folder = str(self.folder).replace("\\", "\\\\").replace('"', '\\"')
        text = _SETTINGS.format(port=self.port, password=self.password, folder=folder)
        paths.write_private(self.settings, text)

    def _known(self) -> dict[str, str]:
        try:
            lines = [line.split(maxsplit=1) for line in self.settings.read_text().splitlines()]
        except OSError:
            return {}
        return {line[0]: line[1] for line in lines if len(line) == 2}

    def _end_leftover(self) -> None:
        try:
            pid = int((self.folder / "pid").read_text())
        except (OSError, ValueError):
            return
        # Valkey shows its own title instead of its arguments; the directory it works in is ours alone.
        if process.works_in(pid, self.folder):
            process.end_orphan(pid, STOP)

    def wait_ready(self, server: subprocess.Popen[bytes], timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until our server, and not a stranger on its port, has read its data and answers."""
        deadline = time.monotonic() + timeout_s
        with redis.Redis.from_url(self.url, socket_timeout=5, socket_connect_timeout=5) as client:
            while server.poll() is None and time.monotonic() < deadline:
                try:
                    client.ping()
                    if client.info("server")["process_id"] == server.pid:
                        return
                except (redis.ConnectionError, redis.TimeoutError):  # not listening yet, or LOADING
                    pass
                except redis.RedisError as error:
                    raise StackError(
                        f"Something that is not our Valkey answers on port {self.port}: {error}"
                    ) from error
                time.sleep(process.POLL_S)
        raise StackError(f"Valkey did not start on port {self.port}: its last lines say why.")
