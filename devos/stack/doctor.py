"""Every check of `devos doctor`, in the order in which one fault explains the next."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from devos.stack import doctor_machine, external, runfile
from devos.stack.errors import StackError
from devos.stack.findings import Finding, fail, ok, warn


def findings(home: Path) -> Iterator[Finding]:
    """One finding after the other; checks that need a server are left out when it is not there."""
    yield from doctor_machine.python()
    yield from doctor_machine.programs()
    settings_work = True
    for finding in doctor_machine.environment():
        settings_work = settings_work and finding.level != "fail"
        yield finding
    yield from doctor_machine.home(home)
    yield from doctor_machine.running(home)
    facts = runfile.read(home)
    database_url = os.environ.get("DATABASE_URL") or str(facts.get("database_url", ""))
    redis_url = os.environ.get("REDIS_URL") or str(facts.get("redis_url", ""))
    database_works = False
    if database_url:
        try:
            external.read_postgres_url(database_url)
        except StackError:
            settings_work = False  # Django could not read it either
        for finding in _database(database_url):
            database_works = finding.level == "ok"
            yield finding
    if redis_url:
        yield from _broker(redis_url)
    if settings_work:
        from devos.stack import doctor_platform

        yield from doctor_platform.findings(database_works, facts.get("children") or {})


def _database(url: str) -> Iterator[Finding]:
    try:
        yield ok("database", f"PostgreSQL {external.check_postgres(url)}")
    except StackError as error:
        yield fail("database", str(error), "Start it, or correct DATABASE_URL. Without it nothing works.")


def _broker(url: str) -> Iterator[Finding]:
    try:
        version, policy = external.check_redis(url)
    except StackError as error:
        yield fail("broker", str(error), "Start it, or correct REDIS_URL. Until then jobs wait in the database.")
        return
    yield ok("broker", f"Redis protocol {version}")
    if problem := external.policy_warning(policy):
        yield warn("broker policy", problem, "In redis.conf: maxmemory-policy noeviction")
    elif policy == "unknown":
        yield warn("broker policy", "the server does not tell its maxmemory-policy", "See that it is noeviction.")
    else:
        yield ok("broker policy", policy)
