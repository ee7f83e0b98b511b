"""A real `devos up` in a directory of its own, for acceptance tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import requests

from devos.stack import paths
from devos.stack.identity import LAUNCH
from tests.support.waiting import until

REPOSITORY = Path(__file__).resolve().parents[2]
UP_TIMEOUT_S = 160.0
DOWN_TIMEOUT_S = 60.0


def _shared_bytecode() -> dict[str, str]:
    """One place for the bytecode that `devos up` would keep in its home, which is new for each test."""
    if not os.environ.get("PYTHONDONTWRITEBYTECODE"):
        return {}
    folder = paths.private_dir(Path(tempfile.gettempdir()) / f"devos-test-bytecode-{os.geteuid()}")
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder)}


class Platform:
    """Starts on `start`, ends on `stop`. What it printed is in `log`; its addresses come from its run.json."""

    def __init__(self, home: Path, *args: str, **env: str) -> None:
        self.home = home
        self.args = args
        dropped = {"DATABASE_URL", "REDIS_URL", "DEVOS_PORT", "DEVOS_CONCURRENCY", "DJANGO_SETTINGS_MODULE"}
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        self.env = {**kept, **_shared_bytecode(), "DEVOS_HOME": str(home), **env}
        self.log_file = home.with_name(f"{home.name}.log")
        self.process: subprocess.Popen[bytes] | None = None

    # ---- life

    def begin(self) -> None:
        """Start without waiting for READY."""
        with self.log_file.open("ab") as log:
            # Stopped also when the tests are killed.
            tied = [sys.executable, "-I", "-S", str(LAUNCH), str(os.getpid()), str(int(signal.SIGTERM)), "same"]
            self.process = subprocess.Popen(
                [*tied, sys.executable, "-m", "devos.cli", "up", *self.args],
                cwd=REPOSITORY,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    def start(self) -> Platform:
        """Start and wait for READY."""
        self.begin()
        until(self._is_up, UP_TIMEOUT_S, f"devos up is READY; it printed:\n{self.log()}")
        return self

    def _is_up(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise AssertionError(f"devos up ended while starting:\n{self.log()}")
        return self.run.get("pid") == self.process.pid

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop it as a person or a service manager would; the exit code."""
        if self.process is None:
            raise AssertionError("not started")
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(DOWN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise AssertionError(
                f"devos up did not stop within {DOWN_TIMEOUT_S:.0f} s:\n{self.log()[-4000:]}"
            ) from None

    def kill_supervisor(self) -> None:
        """kill -9 of the supervisor itself."""
        if self.process is None:
            raise AssertionError("not started")
        self.process.kill()
        self.process.wait()

    # ---- what it says of itself

    def log(self) -> str:
        """Everything printed so far."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    @property
    def run(self) -> dict[str, Any]:
        """run.json as it is now; empty while nothing runs."""
        try:
            return json.loads((self.home / "run.json").read_text())
        except (OSError, ValueError):
            return {}

    @property
    def bootstrap(self) -> dict[str, str]:
        """bootstrap.json: admin_user, admin_password, api_key."""
        return json.loads((self.home / "bootstrap.json").read_text())

    @property
    def url(self) -> str:
        return str(self.run["url"])

    @property
    def flower_url(self) -> str:
        return str(self.run["flower_url"])

    @property
    def sample_site_url(self) -> str:
        return str(self.run["sample_site_url"])

    @property
    def database_url(self) -> str:
        return str(self.run["database_url"])

    @property
    def redis_url(self) -> str:
        return str(self.run["redis_url"])

    @property
    def api_key(self) -> str:
        return self.bootstrap["api_key"]

    @property
    def children(self) -> dict[str, int]:
        """Process id by name: postgres, valkey, web, jobs, system, beat, flower, sample."""
        return dict(self.run.get("children", {}))

    # ---- what tests do to it

    def kill(self, child: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to one child's main process; the process id it had."""
        pid = self.children[child]
        os.kill(pid, number)
        return pid

    def wait_restarted(self, child: str, old_pid: int, timeout_s: float = 45.0) -> int:
        """Wait until the supervisor has started ``child`` again; the new process id."""
        until(lambda: self.children.get(child, old_pid) != old_pid, timeout_s, f"{child} is started again")
        return self.children[child]

    def pool_pids(self, child: str = "jobs") -> list[int]:
        """Process ids of a worker's pool: the children of its main process."""
        parent = self.children[child]
        return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]

    def api(self, method: str, path: str, **kwargs: Any) -> requests.Response:
        """One request to the REST door with the bootstrap key; ``path`` as in ``/api/tasks``."""
        headers = {"Authorization": f"Api-Key {self.api_key}", **kwargs.pop("headers", {})}
        return requests.request(method, self.url + path, headers=headers, timeout=30, **kwargs)

    def devos(self, *args: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Run the `devos` command against this platform."""
        return subprocess.run(
            [sys.executable, "-m", "devos.cli", *args],
            cwd=REPOSITORY,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
