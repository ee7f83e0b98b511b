"""What surrounds an action while it runs: its time limit, and a database session that is clean before and after."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus


class SoftTimeout(BaseException):
    """Raised inside an action at its time limit. BaseException, so that `except Exception` does not swallow it."""


def _interrupt(*_: Any) -> None:
    raise SoftTimeout


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `SoftTimeout` in the block after ``seconds``.

    Only a main thread can be interrupted; in other threads the context's cancellation check and, for workers, the
    parent's hard limit do the work.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if signal.getsignal(signal.SIGALRM) is not _interrupt:
        # Ours from now on: taking it anew for each short job costs more than running it.
        signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class _Watch:
    """Notes whether an action changed settings of its database session."""

    def __init__(self) -> None:
        self.changed = False

    def __call__(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        text = str(sql).lstrip()[:1_000].lower()
        self.changed |= text.startswith("set ") or "set_config" in text
        return execute(sql, params, many, context)


def _watch(connection: BaseDatabaseWrapper) -> _Watch:
    """The watch of this connection, put there once."""
    for wrapper in connection.execute_wrappers:
        if isinstance(wrapper, _Watch):
            return wrapper
    watch = _Watch()
    connection.execute_wrappers.append(watch)
    return watch


@contextmanager
def clean_database_session() -> Iterator[None]:
    """Whatever the action leaves open on its connection (a transaction, session settings) ends with the action.

    The bookkeeping of the runtime uses another connection, so a transaction the action broke cannot swallow it.
    """
    connection = connections["default"]
    if connection.in_atomic_block:  # sync mode inside a caller's transaction: it is the caller's to end
        yield
        return
    watch = _watch(connection)
    watch.changed = False
    try:
        yield
    finally:
        if connection.connection is not None:
            open_transaction = connection.connection.info.transaction_status is not TransactionStatus.IDLE
            if watch.changed or open_transaction or connection.in_atomic_block:
                connection.in_atomic_block = False
                connection.savepoint_ids = []
                connection.close()
