"""PostgreSQL and Valkey of one DEVOS_HOME and nothing else: what tests and `python -m devos.stack.servers` start."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from devos.stack import paths, process
from devos.stack.errors import StackError
from devos.stack.postgres import Postgres
from devos.stack.valkey import Valkey

VALKEY_TRIES = 5


@contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Hold the lock of ``home``; StackError when another DevOS holds it. The kernel frees it when we die."""
    with (home / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise StackError(
                f"DevOS is already running in {home} (process {holder}). "
                "Stop it first, or give this one another DEVOS_HOME."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@dataclass
class Servers:
    """The running pair. Both write to log files in ``home``."""

    home: Path
    database_url: str = ""
    redis_url: str = ""
    running: list[tuple[subprocess.Popen[bytes], process.Command]] = field(default_factory=list)

    def start(self, postgres: bool = True, valkey: bool = True) -> None:
        """Start the servers asked for and wait until they answer. Raises StackError with the log's end."""
        if postgres:
            self._start_postgres()
        if valkey:
            self._start_valkey()

    def _start_postgres(self) -> None:
        server = Postgres(self.home)
        server.prepare()
        child = self._spawn(server.command())
        try:
            server.wait_ready(child)
        except StackError as error:
            raise StackError(f"{error}\n{self._log_end('postgres')}") from error
        self.database_url = server.url

    def _start_valkey(self) -> None:
        server = Valkey(self.home)
        server.prepare()
        for attempt in range(1, VALKEY_TRIES + 1):
            child = self._spawn(server.command())
            try:
                server.wait_ready(child)
                break
            except StackError as error:
                process.stop(*self._taken_back())
                if attempt == VALKEY_TRIES:
                    raise StackError(f"{error}\n{self._log_end('valkey')}") from error
                server.choose_port()
        self.redis_url = server.url

    def _taken_back(self) -> tuple[subprocess.Popen[bytes], tuple[tuple[signal.Signals, float], ...]]:
        child, command = self.running.pop()
        return child, command.stop

    def _spawn(self, command: process.Command) -> subprocess.Popen[bytes]:
        with (self.home / f"{command.name}.log").open("wb") as log:
            child = process.start(command, log)
        self.running.append((child, command))
        return child

    def _log_end(self, name: str) -> str:
        lines = (self.home / f"{name}.log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-15:])

    def stop(self) -> None:
        """End the servers, the last started first."""
        while self.running:
            process.stop(*self._taken_back())


def main() -> int:
    """Run both servers until SIGTERM or Ctrl-C; their URLs are printed as one line of JSON and kept in servers.json."""
    parser = argparse.ArgumentParser(prog="python -m devos.stack.servers", description=__doc__)
    parser.add_argument("--home", type=Path, default=Path(os.environ.get("DEVOS_HOME", ".devos")))
    home_given = parser.parse_args().home
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: done.set())
    try:
        home = paths.open_home(home_given)
        with only_one(home):
            servers = Servers(home)
            try:
                servers.start()
                line = json.dumps({"database_url": servers.database_url, "redis_url": servers.redis_url})
                paths.write_private(home / "servers.json", line + "\n")
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
                done.wait()
            finally:
                (home / "servers.json").unlink(missing_ok=True)
                servers.stop()
    except StackError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
