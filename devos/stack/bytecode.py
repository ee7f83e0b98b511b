"""Compiled Python for those who asked for none beside the source (PYTHONDONTWRITEBYTECODE).

The platform is seven processes that import the same thousand modules. To compile them anew in each, at each start, is
most of a start: so the bytecode goes into DEVOS_HOME, and nothing is written where it was not wanted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_SWITCH = "PYTHONDONTWRITEBYTECODE"


def _folder(home: Path) -> Path:
    return home.absolute() / "bytecode"


def environment(home: Path) -> Mapping[str, str]:
    """What to add to the environment of our own programs."""
    if not os.environ.get(_SWITCH):
        return {}
    return {_SWITCH: "", "PYTHONPYCACHEPREFIX": str(_folder(home))}


def use_here(home: Path) -> None:
    """The same for what this process imports from now on. Leaves it when there is no home and none can be made."""
    if os.environ.get(_SWITCH) and sys.dont_write_bytecode:
        try:
            # Python would make missing directories itself, open to all.
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            _folder(home).mkdir(exist_ok=True, mode=0o700)
        except OSError:
            return
        sys.pycache_prefix = str(_folder(home))
        sys.dont_write_bytecode = False
