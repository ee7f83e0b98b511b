"""The programs of the platform and how each is started and stopped."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devos.stack import bytecode, paths
from devos.stack.errors import StackError
from devos.stack.process import Command

JOB_QUEUES = "default,high,low,scheduled,agent,workflow"
SYSTEM_QUEUE = "system"
WEB_PORT = 8000
FLOWER_PORT = 5555
SAMPLE_PORT = 8900
PROCESSES_MIN = 2
# What a worker may take beyond the grace of its jobs to leave.
WORKER_SLACK_S = 10.0


@dataclass(frozen=True)
class Options:
    """What `devos up` was asked for. ``port`` None means any free one near 8000."""

    home: Path
    port: int | None = None
    concurrency: int = field(default_factory=lambda: max(PROCESSES_MIN, os.cpu_count() or 1))
    events: bool = True
    flower: bool = True
    sample_site: bool = True
    first_task: bool = True
    shutdown_grace_s: float = 20.0


@dataclass
class Plan:
    """Commands for one run: the options, the addresses of the servers, and the ports that were taken."""

    options: Options
    database_url: str
    redis_url: str
    ports: dict[str, int] = field(default_factory=dict)
    flower_login: str = ""

    def env(self, **more: str) -> Mapping[str, str]:
        """The environment of our own programs."""
        own = {
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "DEVOS_HOME": str(self.options.home),
            "DJANGO_SETTINGS_MODULE": "devos.settings",
            "PYTHONUNBUFFERED": "1",
            "PYTHONTZPATH": "",
            "CELERY_SKIP_CHECKS": "1",
        }
        return {**os.environ, **bytecode.environment(self.options.home), **own, **more}

    def django(self, *args: str) -> Command:
        """A management command, as `manage.py` would run it but from any directory."""
        # Django's checks are for developers (tests and lint run them); here they cost a second of each start.
        return Command(args[0], [sys.executable, "-m", "django", *args, "--skip-checks"], self.env())

    def devos(self, *args: str) -> Command:
        """The `devos` command."""
        return Command("devos", [sys.executable, "-m", "devos.cli", *args], self.env())

    def web(self) -> Command:
        """uvicorn on loopback."""
        argv = ["uvicorn", "devos.asgi:application", "--host", "127.0.0.1", "--port", str(self._port("web"))]
        # An open event stream would hold the shutdown for ever.
        argv += ["--no-access-log", "--log-level", "warning", "--timeout-graceful-shutdown", "3"]
        static = self.options.home / "static"
        static.mkdir(exist_ok=True)
        return Command("web", self._python(*argv), self.env(STATIC_ROOT=str(static)), ((signal.SIGTERM, 8.0),))

    def jobs(self) -> Command:
        """The worker of all queues that carry jobs."""
        return self._worker("jobs", JOB_QUEUES, self.options.concurrency)

    def system(self) -> Command:
        """The worker of the sweeps alone, so that they never wait behind work."""
        return self._worker("system", SYSTEM_QUEUE, 1)

    def _worker(self, name: str, queues: str, processes: int) -> Command:
        argv = ["worker", "-Q", queues, "-c", str(processes), "-n", f"{name}@%h"]
        argv += ["--without-mingle", "--without-gossip"]
        if self.options.events:
            argv.append("-E")
        # TERM lets running jobs end or hands them back after the grace; QUIT is for a worker that does not keep to it.
        # When we die there is no database left to finish jobs in, so the death signal is QUIT as well.
        stop = ((signal.SIGTERM, self.options.shutdown_grace_s + WORKER_SLACK_S), (signal.SIGQUIT, 5.0))
        # As root Celery warns of pickle, which we do not accept from the wire.
        quiet = ",".join(
            filter(None, [os.environ.get("PYTHONWARNINGS"), "ignore:You're running the worker with superuser"])
        )
        return Command(name, self._celery(*argv), self.env(PYTHONWARNINGS=quiet), stop, signal.SIGQUIT)

    def beat(self) -> Command:
        """The clock."""
        argv = self._celery("beat", "--scheduler", "devos.beat:DevosScheduler")
        return Command("beat", argv, self.env(), ((signal.SIGTERM, 5.0),))

    def flower(self) -> Command:
        """The view of the wire, behind basic auth; the login goes by the environment, which others cannot read."""
        argv = self._celery("flower", "--address=127.0.0.1", f"--port={self._port('flower')}", "--logging=warning")
        env = self.env(FLOWER_BASIC_AUTH=self.flower_login)
        return Command("flower", argv, env, ((signal.SIGTERM, 5.0),))

    def sample_site(self) -> Command:
        """A small web site for first tries."""
        argv = self._python("devos.plugins.web.sample_site", "--port", str(self._port("sample")))
        return Command("sample", argv, self.env(), ((signal.SIGTERM, 3.0),))

    def _python(self, *args: str) -> list[str]:
        return [sys.executable, "-m", *args]

    def _celery(self, *args: str) -> list[str]:
        return self._python("celery", "--quiet", "-A", "devos.celery:app", *args)

    def url(self, name: str) -> str:
        """The address of a child that has a port; empty when it has none."""
        return f"http://127.0.0.1:{self.ports[name]}" if name in self.ports else ""

    def check_port(self) -> None:
        """Take the web port now. StackError when one was asked for that is taken: better before all the work."""
        self._port("web")

    def _port(self, name: str) -> int:
        """The port of a child. It is kept over restarts, because others have been told of it."""
        if name not in self.ports:
            self.ports[name] = self._chosen_port(name)
        return self.ports[name]

    def _chosen_port(self, name: str) -> int:
        wanted = self.options.port if name == "web" else None
        if wanted is None:
            return paths.free_port({"web": WEB_PORT, "flower": FLOWER_PORT, "sample": SAMPLE_PORT}[name])
        if not (paths.port_is_free(wanted) and paths.claim_port(wanted)):
            raise StackError(
                f"Port {wanted} (DEVOS_PORT) is taken by another program. "
                "Stop that one, set DEVOS_PORT to another port, or unset it to take a free one."
            )
        return wanted

    def another_port(self, name: str) -> None:
        """Give up a port that was free when chosen and is not any more. A port that was asked for stays."""
        if (
            name in self.ports
            and not (name == "web" and self.options.port)
            and not paths.port_is_free(self.ports[name])
        ):
            del self.ports[name]
