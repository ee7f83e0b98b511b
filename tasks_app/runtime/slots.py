"""Shared memory between a worker's parent and its children: one slot a child.

A child writes what it holds (its claimed executions, which one runs, until when); the parent reads that to renew leases
and to kill, and writes signals (cancel, pause, stop) that the child reads without asking anybody. The memory is an
anonymous shared map made before the fork; a sequence number (odd while a slot is written) keeps reads whole. It is
written in one stroke, as are signals' kinds: `struct` fills with zeros before it writes.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

MAX_HELD = 512
_SIGNALS = 16
_SEQUENCE_SIZE = 4
_HEAD = struct.Struct("=IiIdd")  # pid, current (-1: none), held, hard deadline, started (monotonic seconds)
_REVOKED_AT = _SEQUENCE_SIZE + _HEAD.size
_HELD_AT = _REVOKED_AT + 8
_SIGNALS_AT = _HELD_AT + 16 * MAX_HELD
_SIGNAL = struct.Struct("=16sB")
# A multiple of the sequence's size, so that each one is a whole word.
_SLOT = -(-(_SIGNALS_AT + _SIGNALS * _SIGNAL.size) // _SEQUENCE_SIZE) * _SEQUENCE_SIZE


class Signal(IntEnum):
    """What a parent asks of a running attempt."""

    CANCEL = 1
    PAUSE = 2
    STOP = 3


@dataclass(frozen=True)
class Held:
    """What a child says it holds. ``hard_deadline`` and ``started`` are monotonic seconds, 0 when nothing runs."""

    slot: int
    pid: int
    executions: list[UUID]
    current: UUID | None
    hard_deadline: float
    started: float


class SlotTable:
    """All slots of one worker. Made in the parent before it forks."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._map = mmap.mmap(-1, slots * _SLOT + _SEQUENCE_SIZE)
        self._words = memoryview(self._map).cast("I")
        self._next_signal = [0] * slots

    # -- the child's side ---------------------------------------------------------------------------------------------

    def enter(self, slot: int, wait_s: float = 10.0) -> None:
        """Take over a slot, once the parent has emptied it of what a dead predecessor held."""
        until = time.monotonic() + wait_s
        while time.monotonic() < until:
            held = self.read(slot)
            if held is None or held.pid == os.getpid():
                break
            time.sleep(0.02)
        self.hold(slot, [])

    def hold(self, slot: int, executions: Sequence[UUID]) -> None:
        """Say which executions were claimed. At most `MAX_HELD`."""
        at = slot * _SLOT
        data = b"".join(one.bytes for one in executions[:MAX_HELD])
        self._begin(slot)
        self._map[at + _HELD_AT : at + _HELD_AT + len(data)] = data
        self._map[at + _REVOKED_AT] = 0
        _HEAD.pack_into(self._map, at + _SEQUENCE_SIZE, os.getpid(), -1, len(data) // 16, 0.0, 0.0)
        self._end(slot)

    def run(self, slot: int, index: int, hard_deadline: float) -> bool:
        """Say that the ``index``-th held execution runs now and must be over by ``hard_deadline``.

        False when the parent has taken back what was not begun (see `revoke_rest`): it must not be run.
        """
        at = slot * _SLOT
        self._begin(slot)
        pid, _, held, _, _ = _HEAD.unpack_from(self._map, at + _SEQUENCE_SIZE)
        _HEAD.pack_into(self._map, at + _SEQUENCE_SIZE, pid, index, held, hard_deadline, time.monotonic())
        self._end(slot)
        return self._map[at + _REVOKED_AT] == 0

    def release(self, slot: int) -> None:
        """Say that nothing is held any more."""
        self.hold(slot, [])

    def signalled(self, slot: int, execution: UUID) -> Signal | None:
        """The strongest signal for this execution (cancel before pause), or None."""
        at = slot * _SLOT + _SIGNALS_AT
        area = self._map[at : at + _SIGNALS * _SIGNAL.size]
        key = execution.bytes
        if key not in area:
            return None
        found = [Signal(kind) for name, kind in _SIGNAL.iter_unpack(area) if name == key]
        return min(found, default=None)

    @property
    def stopping(self) -> bool:
        """Whether the worker is shutting down."""
        return self._map[-1] == 1

    # -- the parent's side --------------------------------------------------------------------------------------------

    def read(self, slot: int) -> Held | None:
        """What the child of a slot holds; None for an empty slot or one that is being written."""
        at = slot * _SLOT
        for _ in range(20):
            sequence = self._sequence(slot)
            pid, current, held, deadline, started = _HEAD.unpack_from(self._map, at + _SEQUENCE_SIZE)
            data = self._map[at + _HELD_AT : at + _HELD_AT + 16 * min(held, MAX_HELD)]
            if sequence % 2 == 0 and self._sequence(slot) == sequence:
                executions = [UUID(bytes=data[i : i + 16]) for i in range(0, len(data), 16)]
                running = executions[current] if 0 <= current < len(executions) else None
                return Held(slot, pid, executions, running, deadline, started) if executions else None
            time.sleep(0.0001)
        return None

    def all(self) -> list[Held]:
        """Every slot that holds something."""
        return [held for slot in range(self.slots) if (held := self.read(slot))]

    def revoke_rest(self, slot: int) -> list[UUID]:
        """Take back the executions a child has claimed but not begun; returns them.

        The flag is set before the child's place is read, and the child writes its place before it reads the flag: one
        of the two always sees the other, so nothing is both taken back and run.
        """
        self._map[slot * _SLOT + _REVOKED_AT] = 1
        held = self.read(slot)
        if held is None or held.current is None:
            return []
        return held.executions[held.executions.index(held.current) + 1 :]

    def signal(self, slot: int, execution: UUID, kind: Signal) -> None:
        """Ask something of an execution; the oldest of 16 signals of a slot is overwritten."""
        position = self._next_signal[slot] % _SIGNALS
        self._next_signal[slot] += 1
        at = slot * _SLOT + _SIGNALS_AT + position * _SIGNAL.size
        # The name last: whoever finds it finds its kind.
        self._map[at : at + 16] = bytes(16)
        self._map[at + 16] = kind
        self._map[at : at + 16] = execution.bytes

    def clear(self, slot: int) -> None:
        """Empty the slot of a child that is dead."""
        self._begin(slot)
        _HEAD.pack_into(self._map, slot * _SLOT + _SEQUENCE_SIZE, 0, -1, 0, 0.0, 0.0)
        self._end(slot)

    def stop(self) -> None:
        """Tell all children that the worker shuts down."""
        self._map[-1] = 1

    def _sequence(self, slot: int) -> int:
        return self._words[slot * _SLOT // _SEQUENCE_SIZE]

    def _begin(self, slot: int) -> None:
        # Odd already when a writer was killed while it wrote.
        self._words[slot * _SLOT // _SEQUENCE_SIZE] = self._sequence(slot) | 1

    def _end(self, slot: int) -> None:
        self._words[slot * _SLOT // _SEQUENCE_SIZE] = (self._sequence(slot) + 1) & 0xFFFFFFFE
