"""The embedded PostgreSQL: who it runs as, who may do what, and what it survives."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from devos.stack import identity, paths, process
from devos.stack.postgres import Postgres
from devos.stack.servers import Servers
from tests.support.waiting import until

Serve = Callable[..., Servers]


def ask(url: str, query: str) -> object:
    with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
        cursor = connection.execute(query)
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None


def test_application_role_is_owner_but_not_superuser(home: Path, serve: Serve) -> None:
    url = serve(home, valkey=False).database_url
    assert ask(url, "select current_user") == "devos"
    assert ask(url, "select rolsuper from pg_roles where rolname = current_user") is False
    assert ask(url, "select pg_get_userbyid(datdba) from pg_database where datname = current_database()") == "devos"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(url, "select pg_read_file('/etc/hostname')")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(url, "alter role devos superuser")


def test_settings_that_matter(home: Path, serve: Serve) -> None:
    url = serve(home, valkey=False).database_url
    expected = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "listen_addresses": ""}
    assert {name: ask(url, f"show {name}") for name in expected} == expected
    assert ask(url, "show autovacuum_naptime") == "10s"
    assert ask(url, "show timezone") == "UTC"
    assert ask(url, "show server_encoding") == "UTF8"


def test_application_role_makes_databases_extensions_and_counts_statements(home: Path, serve: Serve) -> None:
    url = serve(home, valkey=False).database_url
    ask(url, "create database test_devos")
    other = url.replace("/devos?", "/test_devos?")
    ask(other, "create extension pg_trgm")
    ask(url, "select pg_stat_statements_reset()::text")
    ask(url, "select 41 + 1")
    assert ask(url, "select sum(calls) from pg_stat_statements where query like 'select $1 + $2'") == 1


def test_socket_and_data_are_private(home: Path, serve: Serve) -> None:
    serve(home, valkey=False)
    server = Postgres(home)
    for folder in (home, server.sockets, server.data):
        assert folder.stat().st_mode & 0o077 == 0, folder


def test_data_survives_a_stop_and_a_kill(home: Path, serve: Serve) -> None:
    first = serve(home, valkey=False)
    ask(first.database_url, "create table kept (n int)")
    first.stop()
    second = serve(home, valkey=False)
    ask(second.database_url, "insert into kept values (1)")
    second.running[0][0].kill()
    second.running[0][0].wait()
    third = serve(home, valkey=False)
    assert ask(third.database_url, "select count(*) from kept") == 1


def test_own_settings_stay_and_win(home: Path, serve: Serve) -> None:
    serve(home, valkey=False).stop()
    (home / "pg18" / "own.conf").write_text("work_mem = '17MB'\nautovacuum_naptime = '7s'\n")
    url = serve(home, valkey=False).database_url
    assert ask(url, "show work_mem") == "17MB"
    assert ask(url, "show autovacuum_naptime") == "7s"


def test_pid_file_that_names_a_strangers_process(home: Path, serve: Serve) -> None:
    serve(home, valkey=False).stop()
    pid_file = home / "pg18" / "postmaster.pid"
    pid_file.write_text(f"{os.getppid()}\n{home / 'pg18'}\n1\n15432\n\n\n")
    assert ask(serve(home, valkey=False).database_url, "select 1") == 1


def test_server_left_by_a_killed_start_is_ended(home: Path, serve: Serve) -> None:
    left = serve(home, valkey=False)
    child, _ = left.running[0]
    assert ask(serve(home, valkey=False).database_url, "select 1") == 1
    until(lambda: child.poll() is not None, 10, "the server that was left has ended")
    left.running.clear()


def test_interrupted_initdb_is_begun_again(home: Path, serve: Serve) -> None:
    (home / "pg18.tmp").mkdir()
    (home / "pg18.tmp" / "PG_VERSION").write_text("18")
    assert ask(serve(home, valkey=False).database_url, "select 1") == 1


def test_long_and_strange_home_path(tmp_path: Path, serve: Serve) -> None:
    deep = tmp_path / "a home with 'quotes' & spaces % é" / ("long" * 20) / ("path" * 20)
    home = paths.open_home(deep)
    servers = serve(home)
    assert ask(servers.database_url, "select 1") == 1
    sockets = Postgres(home).sockets
    assert sockets.stat().st_mode & 0o777 == 0o700
    servers.stop()
    sockets.rmdir()


def test_short_place_of_a_stranger_is_refused(tmp_path: Path) -> None:
    from devos.stack.errors import StackError

    place = tmp_path / "place"
    place.mkdir(mode=0o755)
    with pytest.raises(StackError, match="not a private directory"):
        paths.private_dir(place)
    link = tmp_path / "link"
    link.symlink_to(place)
    with pytest.raises(StackError, match="not a private directory"):
        paths.private_dir(link)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another identity")
def test_root_without_user_namespaces_uses_an_account(home: Path) -> None:
    server = Postgres(home, identity.setuid())
    log_path = home / "postgres.log"
    try:
        for round_ in range(2):  # the second start must find the data again by itself
            again = server if round_ == 0 else Postgres(home)
            again.prepare()
            with log_path.open("wb") as log:
                child = process.start(again.command(), log)
            try:
                again.wait_ready(child)
                assert ask(again.url, "select 1") == 1
                assert Path(f"/proc/{child.pid}").stat().st_uid == server.identity.uid != 0
            finally:
                process.stop(child, again.command().stop)
        assert again.identity.kind == "setuid"
    finally:
        shutil.rmtree(server.place)


def test_ends_with_its_parent(home: Path) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-m", "devos.stack.servers", "--home", str(home)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    with starter:
        assert starter.stdout is not None
        assert starter.stdout.readline().startswith(b"{")
        pids = [int((home / name).read_text().split()[0]) for name in ("pg18/postmaster.pid", "valkey/pid")]
        starter.send_signal(signal.SIGKILL)
    until(lambda: not any(process.alive(pid) for pid in pids), 15, "the servers ended with their parent")
