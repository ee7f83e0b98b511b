"""A scratch place to measure in: a database of its own beside the real one, another Redis database, and real servers.

Nothing of a bench run touches the platform's own rows, and what is measured are the servers the platform uses.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from devos.stack import paths, runfile
from devos.stack.servers import Servers, only_one

REDIS_DATABASE = 9


@contextmanager
def servers() -> Iterator[tuple[str, str]]:
    """URLs of PostgreSQL and Redis: from the environment, of the platform that runs, or of servers started for this."""
    home = Path(os.environ.get("DEVOS_HOME", ".devos"))
    running = runfile.read(home)
    database = os.environ.get("DATABASE_URL") or running.get("database_url")
    redis = os.environ.get("REDIS_URL") or running.get("redis_url")
    if database and redis:
        yield str(database), str(redis)
        return
    with tempfile.TemporaryDirectory(prefix="devos-bench-") as directory:
        own = paths.open_home(Path(directory) / "home")
        with only_one(own):
            pair = Servers(own)
            try:
                pair.start()
                yield pair.database_url, pair.redis_url
            finally:
                pair.stop()


@contextmanager
def environment() -> Iterator[dict[str, str]]:
    """The environment for processes of a bench run: a freshly migrated scratch database, dropped afterwards."""
    with servers() as (database_url, redis_url):
        name = f"devos_bench_{os.getpid()}"
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        env = {
            **os.environ,
            "DATABASE_URL": make_conninfo(database_url, dbname=name),
            "DEVOS_BENCH_BASE_URL": database_url,
            "REDIS_URL": f"{redis_url.rsplit('/', 1)[0]}/{REDIS_DATABASE}",
            "DJANGO_SETTINGS_MODULE": "devos.settings",
            "PYTHONWARNINGS": "ignore",
        }
        try:
            manage = Path(__file__).resolve().parents[2] / "manage.py"
            subprocess.run([sys.executable, str(manage), "migrate", "--verbosity=0"], env=env, check=True)
            yield env
        finally:
            _drop(database_url, name)


def _drop(database_url: str, name: str) -> None:
    """Drop the scratch database. Not WITH (FORCE): that needs the right to end an autovacuum worker, which we lack."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        for tries_left in range(20, 0, -1):
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and usename = current_user",
                [name],
            )
            try:
                connection.execute(sql.SQL("drop database {}").format(sql.Identifier(name)))
                return
            except psycopg.errors.ObjectInUse:
                if tries_left == 1:
                    raise
                time.sleep(0.5)
