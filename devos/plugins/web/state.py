"""Where a scan stands. It is plain JSON inside, so that a paused scan can go on in another process."""

from __future__ import annotations

from collections import deque
from typing import Any

_VERSION = 1
MAX_WAITING = 50_000
MAX_TARGETS = 50_000
_KEPT_REFERENCES = 5


class ScanState:
    """Frontier, rows and links of a scan. `checkpoint` is cheap: it hands out the live parts, not copies."""

    def __init__(self) -> None:
        self.waiting: deque[list[Any]] = deque()  # [url, depth, hops of redirects behind it]
        self.rows: dict[str, dict[str, Any]] = {}
        self.blocked: dict[str, None] = {}
        # target -> [number of links, is external, [[page, text], ...]]
        self.targets: dict[str, list[Any]] = {}
        self.external: dict[str, dict[str, Any]] = {}
        self.sitemap: dict[str, Any] | None = None
        self.hosts: list[str] = []
        self.again: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.warnings: list[str] = []
        self.elapsed_s = 0.0
        self._known: set[str] = set()

    @classmethod
    def resume(cls, checkpoint: dict[str, Any] | None) -> ScanState:
        """The state of ``checkpoint``; a fresh one when there is none or another version wrote it."""
        state = cls()
        if not checkpoint or checkpoint.get("version") != _VERSION:
            return state
        state.waiting.extend(checkpoint["waiting"])
        state.blocked = dict.fromkeys(checkpoint["blocked"])
        for name in ("rows", "targets", "external", "sitemap", "hosts", "again", "counts", "warnings", "elapsed_s"):
            setattr(state, name, checkpoint[name])
        state._known = {entry[0] for entry in state.waiting} | set(state.rows) | set(state.blocked)
        return state

    def checkpoint(self, elapsed_s: float) -> dict[str, Any]:
        """Everything `resume` needs. ``elapsed_s``: seconds of work so far."""
        return {
            "version": _VERSION,
            "waiting": list(self.waiting),
            "rows": self.rows,
            "blocked": list(self.blocked),
            "targets": self.targets,
            "external": self.external,
            "sitemap": self.sitemap,
            "hosts": self.hosts,
            "again": self.again,
            "counts": self.counts,
            "warnings": self.warnings,
            "elapsed_s": elapsed_s,
        }

    def add(self, url: str, depth: int, hops: int = 0) -> None:
        """Put ``url`` at the end of the frontier unless it is known already."""
        if url in self._known:
            return
        if len(self.waiting) >= MAX_WAITING:
            self.count("waiting_dropped")
            return
        self._known.add(url)
        self.waiting.append([url, depth, hops])

    def unvisited(self) -> int:
        """How many known URLs wait, those that only a sitemap names included."""
        listed = self.sitemap["urls"] if self.sitemap and not self.sitemap["taken"] else []
        return len(self.waiting) + self.counts.get("waiting_dropped", 0) + sum(url not in self._known for url in listed)

    def link(self, target: str, page: str, text: str, *, external: bool) -> None:
        """Note a link from ``page`` to ``target``."""
        entry = self.targets.get(target)
        if entry is None:
            if len(self.targets) >= MAX_TARGETS:
                self.count("targets_dropped")
                return
            entry = self.targets[target] = [0, external, []]
        entry[0] += 1
        if len(entry[2]) < _KEPT_REFERENCES:
            entry[2].append([page, text])

    def count(self, name: str, by: int = 1) -> None:
        """Add to a named counter."""
        self.counts[name] = self.counts.get(name, 0) + by

    def warn(self, text: str) -> None:
        """Say something about the scan as a whole, once."""
        if text not in self.warnings and len(self.warnings) < 100:
            self.warnings.append(text)
