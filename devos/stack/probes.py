"""How the supervisor sees that something works: by HTTP for web and Flower, by their row for the workers."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from datetime import datetime

import psycopg

WEB_PROBE_EVERY_S = 5.0
WEB_TIMEOUT_S = 10.0
# Long enough for a slow database; a web process that does not even answer "503" for this long hangs.
WEB_SILENT_MAX_S = 60.0

# No proxy of the machine stands between us and loopback.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def http_status(url: str, timeout_s: float) -> int:
    """The status code ``url`` answers with; 0 when it does not answer."""
    try:
        with _opener.open(url, timeout=timeout_s) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return int(error.code)
    except OSError:
        return 0


def database_now(url: str) -> datetime:
    """The database's clock, for `workers_since`."""
    with psycopg.connect(url, connect_timeout=5) as connection:
        [row] = connection.execute("select clock_timestamp()").fetchall()
    now: datetime = row[0]
    return now


def workers_since(url: str, since: datetime, queues: tuple[str, ...]) -> bool:
    """Whether for each queue a worker has registered itself after ``since`` and still runs."""
    query = """select count(distinct wanted) from workers, unnest(%s::text[]) as wanted
               where started_at >= %s and stopped_at is null and wanted = any(queues::text[])"""
    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            row = connection.execute(query, [list(queues), since]).fetchone()
    except psycopg.Error:
        return False
    return row is not None and row[0] == len(queues)


def has_admin(url: str) -> bool:
    """Whether somebody can sign in as administrator."""
    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            row = connection.execute("select exists(select 1 from auth_user where is_superuser)").fetchone()
    except psycopg.Error:
        return False
    return bool(row and row[0])


class WebWatch:
    """Asks the web process for /health in a thread of its own, so that a hanging answer holds up nobody."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/health"
        self._last_answer = time.monotonic()
        self._done = threading.Event()
        threading.Thread(target=self._ask, name="web-watch", daemon=True).start()

    def _ask(self) -> None:
        while not self._done.wait(WEB_PROBE_EVERY_S):
            if http_status(self._url, WEB_TIMEOUT_S):
                self._last_answer = time.monotonic()

    def hangs(self) -> bool:
        """Whether it has not answered for too long. True once; the count then begins anew."""
        if time.monotonic() - self._last_answer < WEB_SILENT_MAX_S:
            return False
        self._last_answer = time.monotonic()
        return True

    def stop(self) -> None:
        """End the thread."""
        self._done.set()
