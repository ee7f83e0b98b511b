"""The keeper: a thread in a worker's parent process that keeps its children's promises.

It renews the leases of what living children run, brings cancel requests, kills a child that outlived its hard limit or
its cancel grace, and hands a dead child's work on at once. A child may hold the GIL for minutes: the keeper does not
need it.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from uuid import UUID

import redis
import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections

from tasks_app.actions import registry
from tasks_app.domain.outcomes import Attempt, Cancelled, HandedBack, Outcome
from tasks_app.domain.retry import RetryPolicy
from tasks_app.runtime import process, signals
from tasks_app.runtime.slots import Held, Signal, SlotTable
from tasks_app.services import sql, workers
from tasks_app.services.jobs import rescue
from tasks_app.services.jobs.renew import renew

log = structlog.get_logger()

LOOK_EVERY_S = 0.25
# A job that runs longer than this keeps no others waiting behind it.
NEIGHBOURS_WAIT_S = 1.0


@dataclass
class Keeper:
    """One per worker. `start` and `stop` are called by the worker's bootstep."""

    worker_id: UUID
    slots: SlotTable
    hostname: str
    queues: list[str]
    concurrency: int
    _stopped: threading.Event = field(default_factory=threading.Event)
    _asked: dict[UUID, float] = field(default_factory=dict)
    _missing: set[UUID] = field(default_factory=set)
    _verdicts: dict[int, rescue.Verdict] = field(default_factory=dict)
    _registered: bool = False
    _renewed_at: float = field(default_factory=time.monotonic)
    _next_renew: float = 0.0
    _restarts: int = 0

    def start(self) -> None:
        """Begin to keep."""
        threading.Thread(target=self._run, name="devos-keeper", daemon=True).start()
        threading.Thread(target=self._listen, name="devos-signals", daemon=True).start()

    def stop(self, grace_s: float) -> None:
        """Shut down: children finish what they run within ``grace_s`` seconds; the rest is killed and handed back."""
        self.slots.stop()
        until = time.monotonic() + grace_s
        while self.slots.all() and time.monotonic() < until:
            time.sleep(0.05)
        for held in self.slots.all():
            self._kill(held, _handed_back)
        until = time.monotonic() + 5
        while self.slots.all() and time.monotonic() < until:
            time.sleep(0.05)
        self._stopped.set()

    # -- the loop -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopped.wait(LOOK_EVERY_S):
                self._look_safely()
            if self._registered:
                workers.stopped(self.worker_id)
        except DatabaseError as error:
            log.warning("keeper.database_away", error=str(error))
        finally:
            connections[sql.RUNTIME].close()

    def _look_safely(self) -> None:
        try:
            self._look()
        except (DatabaseError, InterfaceError) as error:
            log.warning("keeper.database_away", error=str(error))
            self._after_failure()
        except Exception:
            # A keeper that ended would let every lease of this worker run out.
            log.exception("keeper.failed")
            self._after_failure()

    def _after_failure(self) -> None:
        connections[sql.RUNTIME].close()
        self._fence_when_too_long()

    def _look(self) -> None:
        for held in self.slots.all():
            if held.pid != os.getpid() and process.child_is_gone(held.pid):
                self._bury(held)
            else:
                self._check_times(held)
        if time.monotonic() >= self._next_renew:
            self._renew()
            self._next_renew = time.monotonic() + settings.DEVOS.renew_every_s

    def _check_times(self, held: Held) -> None:
        now = time.monotonic()
        if held.current is None:
            return
        if held.executions[-1] != held.current and now - held.started > NEIGHBOURS_WAIT_S:
            rescue.close_held(self.worker_id, self.slots.revoke_rest(held.slot), rescue.not_started)
        if now > held.hard_deadline:
            self._kill(held, _timed_out)
        elif held.current in self._asked and now - self._asked[held.current] > settings.DEVOS.kill_grace_s:
            self._kill(held, _cancelled)

    def _kill(self, held: Held, verdict: rescue.Verdict) -> None:
        if held.pid == os.getpid() or held.pid in self._verdicts:
            return  # a thread cannot be killed; a child is killed once
        log.warning("worker.child_killed", pid=held.pid, execution=str(held.current))
        self._verdicts[held.pid] = verdict
        process.kill_group(held.pid)

    def _bury(self, held: Held) -> None:
        """A child is dead: what ran is judged, what was done but not written runs again, the rest goes back."""
        place = held.executions.index(held.current) if held.current else -1
        if held.current:
            verdict = self._verdicts.get(held.pid, rescue.lost)
            rescue.close_held(self.worker_id, [held.current], verdict)
        rescue.close_held(self.worker_id, held.executions[: max(place, 0)], rescue.lost)
        rescue.close_held(self.worker_id, held.executions[place + 1 :], rescue.not_started)
        self.slots.clear(held.slot)
        self._verdicts.pop(held.pid, None)
        self._restarts += 1

    # -- leases -------------------------------------------------------------------------------------------------------

    def _renew(self) -> None:
        if not self._registered:
            workers.register(self.worker_id, self.hostname, os.getpid(), self.queues, self.concurrency)
            self._registered = True
        held = {execution: one.slot for one in self.slots.all() for execution in one.executions}
        pids = [os.getpid(), *process.children(os.getpid())]
        kept = renew(self.worker_id, list(held), rss_mb=process.rss_mb(pids), restarts=self._restarts)
        self._renewed_at = time.monotonic()
        for one in kept:
            if one.cancel_requested:
                self._ask_cancel(one.execution_id, held[one.execution_id])
        gone = set(held) - {one.execution_id for one in kept}
        running = {one.current for one in self.slots.all()}
        # Missing once may mean just finished; missing twice and still running means the lease is somebody else's now.
        for execution in gone & self._missing & running:
            log.warning("worker.lease_lost", execution=str(execution))
            self._ask_cancel(execution, held[execution])
        self._missing = gone
        self._asked = {one: at for one, at in self._asked.items() if one in held}

    def _ask_cancel(self, execution: UUID, slot: int) -> None:
        if execution not in self._asked:
            self._asked[execution] = time.monotonic()
            self.slots.signal(slot, execution, Signal.CANCEL)

    def _fence_when_too_long(self) -> None:
        """A worker that could not renew for a whole lease is no owner any more: it cancels what it runs."""
        if time.monotonic() - self._renewed_at > settings.DEVOS.lease_s:
            for held in self.slots.all():
                if held.current:
                    self._ask_cancel(held.current, held.slot)

    # -- quick requests -----------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        while not self._stopped.is_set():
            try:
                for message in signals.listen(signals.SIGNALS, self._stopped.is_set):
                    self._on_signal(message)
            except (redis.RedisError, OSError) as error:
                log.debug("signals.away", error=str(error))
                self._stopped.wait(1)

    def _on_signal(self, message: dict[str, object]) -> None:
        if message.get("kind") != "cancel":
            return
        wanted = {UUID(str(text)) for text in message.get("executions", ())}  # type: ignore[attr-defined]
        for held in self.slots.all():
            for execution in wanted.intersection(held.executions):
                self._ask_cancel(execution, held.slot)


def _handed_back(attempt: Attempt, cancel_requested: bool) -> Outcome:
    return Cancelled() if cancel_requested else HandedBack()


def _cancelled(attempt: Attempt, cancel_requested: bool) -> Outcome:
    if cancel_requested:
        return Cancelled("Cancelled; it did not stop by itself and its process was killed.")
    return rescue.lost(attempt, cancel_requested)


def _timed_out(attempt: Attempt, cancel_requested: bool) -> Outcome:
    try:
        action = registry.get(attempt.action_id)
        limit_s, policy = action.timeout_s, action.retry
    except registry.ActionNotRegistered:
        limit_s, policy = 1.0, RetryPolicy()
    return rescue.timed_out(limit_s, policy)(attempt, cancel_requested)
