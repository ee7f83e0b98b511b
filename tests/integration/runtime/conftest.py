"""A caller, a plugin with actions to try, and a pool process's work loop run in the test itself."""

from __future__ import annotations

import time
from collections.abc import Generator

import pytest
from django.db import transaction

from tasks_app.actions import registry
from tasks_app.domain import ids
from tasks_app.domain.principal import Actor, Principal
from tasks_app.models import Organization
from tasks_app.runtime.slots import SlotTable
from tasks_app.runtime.work_loop import WorkLoop
from tasks_app.sdk import ActionError, ActionInput, Context, Plugin, RetryPolicy, action
from tasks_app.services import workers
from tests.integration.runtime import waiting

QUICK = RetryPolicy(max_attempts=3, strategy="fixed", delay_ms=0)


class Anything(ActionInput):
    what: str = ""


@action("test.raise", permission="test.run", retry=QUICK)
def raising(ctx: Context, input: Anything) -> None:
    """Raises the exception named."""
    known = {
        "memory": MemoryError,
        "exit": SystemExit,
        "interrupt": KeyboardInterrupt,
        "recursion": RecursionError,
        "generator": GeneratorExit,
    }
    if input.what in known:
        raise known[input.what]
    raise ActionError("TEST_FAILED", f"nul \x00 and surrogate \ud800 in {input.what}", retryable=False)


@action("test.talk", permission="test.run")
def talk(ctx: Context, input: Anything) -> dict:
    """Says everything a context can say."""
    ctx.log.info("hello \x00", number=1, odd=float("nan"))
    ctx.progress(3, 4, phase="middle", message="nearly\x00")
    ctx.emit("test.talked", {"what": input.what}, resource=("test.thing", "7"))
    return {"text": "a\x00b \ud800", "ids": [ctx.task_id, ctx.job_id, ctx.execution_id], "attempt": ctx.attempt}


@action("test.break_database", permission="test.run", retry=RetryPolicy(max_attempts=1))
def break_database(ctx: Context, input: Anything) -> str:
    """Does to its database session what it should not."""
    from django.db import IntegrityError, connection

    if input.what == "open":
        transaction.atomic().__enter__()
        Organization.objects.create(slug="left-open", name="x")
    elif input.what == "settings":
        with connection.cursor() as cursor:
            cursor.execute("set statement_timeout = '1ms'")
            cursor.execute("set search_path = nowhere")
    else:
        with transaction.atomic():
            try:
                Organization.objects.create(slug="default", name="again")
            except IntegrityError:
                pass
            Organization.objects.count()
    return "done"


@action("test.big", permission="test.run", retry=QUICK)
def big(ctx: Context, input: Anything) -> str:
    """Returns more than may be stored."""
    return "x" * 5_000_000


@pytest.fixture(autouse=True)
def _plugin() -> Generator[None]:
    plugins = [Plugin("test", actions=[raising, talk, break_database, big]), waiting.PLUGIN]
    for plugin in plugins:
        registry.register(plugin)
    yield
    for plugin in plugins:
        registry.unregister(plugin.name)


@pytest.fixture
def principal() -> Principal:
    organization = Organization.objects.get(slug="default")
    return Principal(Actor("system", "test"), organization.id, "admin", request_id="req-1")


@pytest.fixture
def loop() -> WorkLoop:
    worker = WorkLoop(ids.new_id(), SlotTable(2), 0)
    workers.register(worker.worker_id, "test", 1, ["default"], 1)
    return worker


@pytest.fixture
def drain(loop: WorkLoop):
    """Work until nothing is left that could be claimed or readied now."""
    from tasks_app.models import Job

    def run(deadline_s: float = 20) -> None:
        until = time.monotonic() + deadline_s
        while Job.objects.filter(status="queued").exists():
            assert time.monotonic() < until, "jobs are left"
            loop.turn("default")

    return run
