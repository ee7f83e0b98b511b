"""`devos up`: servers, database, web, workers, beat and Flower as children of one process, from start to stop."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from devos.stack import external, first_start, migrated, paths, probes, process, runfile
from devos.stack.child import Child, stop_all
from devos.stack.console import Console
from devos.stack.errors import StackError, StopRequestedError
from devos.stack.plan import Options, Plan
from devos.stack.postgres import Postgres
from devos.stack.process import Command
from devos.stack.servers import VALKEY_TRIES, only_one
from devos.stack.valkey import Valkey

READY_TIMEOUT_S = 150.0
ONE_SHOT_TIMEOUT_S = 300.0
FIRST_TASK_TIMEOUT_S = 60.0
# A child that ends this often before READY will not come up.
ENDS_BEFORE_READY = 3
TELL_AFTER_S = 10.0
TICK_S = 0.1


class Supervisor:
    """One run of the platform. `run` returns the exit code."""

    def __init__(self, options: Options, console: Console) -> None:
        self._options = options
        self._console = console
        self._servers: list[Child] = []
        self._programs: list[Child] = []
        self._stop_signals = 0
        self._began = time.monotonic()
        self._plan = Plan(options, "", "")
        self._first_admin: dict[str, Any] = {}
        self._notes: list[str] = []

    def run(self) -> int:
        """Start everything, say READY, tend it until SIGTERM or Ctrl-C, stop everything."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        with only_one(self._options.home):
            try:
                self._start()
                self._tend()
            except StopRequestedError:
                pass
            finally:
                self._stop()
        return 0

    def _on_signal(self, *_: object) -> None:
        self._stop_signals += 1

    def _check_stop(self) -> None:
        if self._stop_signals:
            raise StopRequestedError

    # ---- start

    def _start(self) -> None:
        for name in runfile.clear_leftovers(self._options.home):
            self._console.say(f"Ended the process {name!r}, left by a DevOS that was killed.")
        self._plan.check_port()
        self._plan.database_url = os.environ.get("DATABASE_URL") or self._start_postgres()
        self._plan.redis_url = os.environ.get("REDIS_URL") or self._start_valkey()
        self._check_external()
        if early := first_start.has_bootstrap(self._options.home):
            self._start_extras()  # they need no database: the second core would be idle during the migration
        self._migrate()
        since = probes.database_now(self._plan.database_url)
        for name in ("web", "jobs", "system", "beat"):
            self._start_program(name, getattr(self._plan, name))
        self._bootstrap()
        if not early:
            self._start_extras()
        self._wait_ready(lambda: probes.workers_since(self._plan.database_url, since, ("default", "system")))
        self._first_task()
        self._say_ready()

    def _start_postgres(self) -> str:
        server = Postgres(self._options.home)

        def make() -> Command:
            server.prepare()
            return server.command()

        child = Child("postgres", make, self._console)
        self._servers.append(child)
        child.start()
        server.wait_ready(child.process)
        self._check_stop()
        return server.url

    def _start_valkey(self) -> str:
        server = Valkey(self._options.home)
        server.prepare()
        child = Child("valkey", server.command, self._console)
        self._servers.append(child)
        for attempt in range(1, VALKEY_TRIES + 1):
            child.start()
            try:
                server.wait_ready(child.process)
                break
            except StackError:
                process.stop(child.process, child.stop_steps())
                if attempt == VALKEY_TRIES:
                    raise
                # Somebody took the port between our choice and the start.
                server.choose_port()
        self._check_stop()
        return server.url

    def _check_external(self) -> None:
        if not any(child.name == "postgres" for child in self._servers):
            external.check_postgres(self._plan.database_url)
        _, policy = external.check_redis(self._plan.redis_url)
        if warning := external.policy_warning(policy):
            self._notes.append(f"WARNING: {warning}")

    def _migrate(self) -> None:
        if not migrated.is_current(self._options.home, self._plan.database_url):
            self._one_shot(self._plan.django("migrate", "--noinput", "--verbosity", "0"))
            migrated.remember(self._options.home, self._plan.database_url)

    def _bootstrap(self) -> None:
        if first_start.has_bootstrap(self._options.home) and probes.has_admin(self._plan.database_url):
            return  # to ask Django would cost a second
        printed = self._one_shot(self._plan.django("bootstrap"))
        facts = first_start.keep_bootstrap(self._options.home, printed)
        self._first_admin = facts if facts.get("created") else {}
        if not first_start.has_bootstrap(self._options.home):
            self._notes.append("The admin was made elsewhere. A new password: python -m django changepassword admin")

    def _start_extras(self) -> None:
        if self._options.sample_site:
            self._start_program("sample", self._plan.sample_site)
        if self._options.flower:
            self._plan.flower_login = first_start.flower_login(self._options.home)
            self._start_program("flower", self._plan.flower)

    def _start_program(self, name: str, make: Callable[[], Command]) -> None:
        def with_port() -> Command:
            if not runfile.read(self._options.home):  # before READY nobody knows the port yet
                self._plan.another_port(name)
            return make()

        child = Child(name, with_port, self._console)
        self._programs.append(child)
        child.start()
        self._check_stop()

    def _wait_ready(self, workers_ready: Callable[[], bool]) -> None:
        checks: dict[str, Callable[[], bool]] = {
            "web": lambda: probes.http_status(f"{self._plan.url('web')}/health", 5) == 200,
            "workers": workers_ready,
            "children": lambda: all(child.pid for child in self._programs),
        }
        if self._options.flower:
            checks["flower"] = lambda: probes.http_status(self._plan.url("flower"), 5) != 0
        if "sample" in self._plan.ports:
            checks["sample"] = lambda: probes.http_status(self._plan.url("sample"), 5) != 0
        deadline = time.monotonic() + READY_TIMEOUT_S
        tell_at = time.monotonic() + TELL_AFTER_S
        while checks:
            self._check_stop()
            self._tend_children()
            self._give_up_on_the_hopeless()
            checks = {name: works for name, works in checks.items() if not works()}
            if checks and time.monotonic() > tell_at:
                self._console.say(f"Waiting for {', '.join(checks)}.")
                tell_at += TELL_AFTER_S
            if checks and time.monotonic() > deadline:
                raise StackError(
                    f"Not ready after {READY_TIMEOUT_S:.0f} s: {', '.join(checks)}. The lines above say why."
                )
            time.sleep(TICK_S)

    def _give_up_on_the_hopeless(self) -> None:
        for child in self._programs:
            if child.ends >= ENDS_BEFORE_READY:
                lines = "\n  ".join(child.last_lines[-10:])
                raise StackError(f"{child.name} ended {child.ends} times while starting. Its last lines:\n  {lines}")

    def _first_task(self) -> None:
        home = self._options.home
        if not (self._options.first_task and "sample" in self._plan.ports and first_start.first_task_due(home)):
            return
        url = self._plan.url("sample")
        try:
            args = ("action", "seo.website.scan", "--input", f"url={url}/", "--follow", "--json")
            printed = self._one_shot(self._plan.devos(*args), FIRST_TASK_TIMEOUT_S)
        except StackError as error:
            reason = first_start.failure_line(str(error))
            self._notes.append(f"WARNING: THE FIRST TASK FAILED (the platform is up all the same): {reason}")
            return
        self._notes.append(f"First task: scanned {url}/ ({first_start.keep_first_task(home, printed)})")

    def _one_shot(self, command: Command, timeout_s: float = ONE_SHOT_TIMEOUT_S) -> str:
        """Run a program of ours to its end, with an eye on the signal to stop; its standard output and error."""
        with tempfile.TemporaryFile() as output:
            child = process.start(command, output)
            process.wait_until(lambda: child.poll() is not None or bool(self._stop_signals), timeout_s)
            late = child.poll() is None
            process.stop(child, command.stop)
            self._check_stop()
            output.seek(0)
            text = output.read().decode(errors="replace").strip()
        if late:
            raise StackError(f"{command.name} did not end within {timeout_s:.0f} s:\n{text}")
        if child.returncode:
            raise StackError(f"{command.name} failed (exit code {child.returncode}):\n{text}")
        return text

    # ---- READY

    def _say_ready(self) -> None:
        self._write_runfile()
        url, flower = self._plan.url("web"), self._plan.url("flower")
        self._console.say(f"READY {url} in {time.monotonic() - self._began:.1f} s")
        self._console.say(f"  desk      {url}/admin/")
        if self._first_admin:
            user, password = self._first_admin["admin_user"], self._first_admin["admin_password"]
            self._console.say(f"            sign in as {user} with password {password}")
            self._console.say(f"            (shown once; kept in {self._options.home / first_start.BOOTSTRAP})")
        self._console.say(f"  API       {url}/api/docs/")
        if flower:
            self._console.say(
                f"  Flower    {flower}/ (asks for the login in {self._options.home / first_start.FLOWER_LOGIN})"
            )
        if sample := self._plan.url("sample"):
            self._console.say(f"  sample    {sample}/")
        for note in self._notes:
            self._console.say(f"  {note}")
        self._console.say("  Ctrl-C stops it; running jobs are finished or handed back.")

    def _write_runfile(self) -> None:
        pids = {child.name: child.pid for child in (*self._servers, *self._programs) if child.pid}
        facts = {
            "url": self._plan.url("web"),
            "flower_url": self._plan.url("flower"),
            "sample_site_url": self._plan.url("sample"),
            "database_url": self._plan.database_url,
            "redis_url": self._plan.redis_url,
            "plugins": os.environ.get("DEVOS_PLUGINS", ""),
            "children": pids,
        }
        runfile.write(self._options.home, facts)

    # ---- while it runs

    def _tend_children(self) -> bool:
        changed = [child.tend() for child in (*self._servers, *self._programs)]
        return any(changed)

    def _tend(self) -> None:
        watch = probes.WebWatch(self._plan.url("web"))
        web = next(child for child in self._programs if child.name == "web")
        try:
            while not self._stop_signals:
                if self._tend_children():
                    self._write_runfile()
                if watch.hangs():
                    self._console.line(
                        "web", f"has not answered for {probes.WEB_SILENT_MAX_S:.0f} s; starting it again"
                    )
                    web.end_now()
                time.sleep(TICK_S)
        finally:
            watch.stop()

    # ---- stop

    def _stop(self) -> None:
        if self._programs or self._servers:
            self._console.say("Stopping; running jobs are finished or handed back (Ctrl-C again to hurry).")
        asked = max(self._stop_signals, 1)

        def hurry() -> bool:
            return self._stop_signals > asked

        stop_all(self._programs[::-1], hurry)
        stop_all(self._servers[::-1], hurry)
        runfile.remove(self._options.home)
        self._console.say("Stopped.")


def up(options: Options) -> int:
    """Run the platform until it is stopped; the exit code of `devos up`."""
    console = Console(sys.stdout)
    try:
        return Supervisor(replace(options, home=paths.open_home(options.home)), console).run()
    except StackError as error:
        sys.stderr.write(f"devos up: {error}\n")
        return 1
