"""What `devos up` shows: the lines of every child with its name before them, and our own messages."""

from __future__ import annotations

import os
import threading
from typing import IO, TextIO

WIDTH = 8
_COLOURS = (36, 33, 32, 35, 34, 31, 96, 93)


class Console:
    """Writes whole lines from many threads. A reader that went away (closed pipe) must not stop the platform."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._colours: dict[str, int] | None = {} if stream.isatty() and "NO_COLOR" not in os.environ else None

    def say(self, text: str) -> None:
        """A message of the supervisor itself."""
        for line in text.splitlines():
            self._write(line)

    def line(self, name: str, text: str) -> None:
        """One line of the child ``name``."""
        self._write(f"{self._prefix(name)} {text}")

    def _prefix(self, name: str) -> str:
        plain = f"{name:<{WIDTH}}|"
        if self._colours is None:
            return plain
        colour = self._colours.setdefault(name, _COLOURS[len(self._colours) % len(_COLOURS)])
        return f"\x1b[{colour}m{plain}\x1b[0m"

    def _write(self, line: str) -> None:
        with self._lock:
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except (OSError, ValueError):
                pass

    def pump(self, name: str, pipe: IO[bytes], keep: list[str]) -> threading.Thread:
        """Show every line of ``pipe`` until it closes; the last ones stay in ``keep`` for error messages."""

        def copy() -> None:
            with pipe:
                for raw in pipe:
                    text = raw.decode(errors="replace").rstrip("\r\n")
                    keep.append(text)
                    del keep[:-20]
                    self.line(name, text)

        thread = threading.Thread(target=copy, name=f"pump-{name}", daemon=True)
        thread.start()
        return thread
