"""The shared memory between a worker's parent and its children, with real processes."""

import os
import time

from tasks_app.domain.ids import new_id
from tasks_app.runtime.process import child_is_gone
from tasks_app.runtime.slots import Signal, SlotTable


def test_a_parent_reads_what_its_child_holds_and_the_child_its_signals():
    table = SlotTable(3)
    held = [new_id() for _ in range(3)]
    pid = os.fork()
    if pid == 0:
        table.hold(1, held)
        table.run(1, 1, 123.0)
        until = time.monotonic() + 10
        while table.signalled(1, held[1]) is None and time.monotonic() < until:
            time.sleep(0.001)
        os._exit(7 if table.signalled(1, held[1]) is Signal.CANCEL else 1)
    until = time.monotonic() + 10
    while (seen := table.read(1)) is None or seen.current is None:
        assert time.monotonic() < until
    assert (seen.pid, seen.executions, seen.current, seen.hard_deadline) == (pid, held, held[1], 123.0)
    assert table.read(0) is None and not child_is_gone(pid)
    table.signal(1, held[1], Signal.PAUSE)
    table.signal(1, held[1], Signal.CANCEL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert child_is_gone(pid)


def test_a_signal_is_for_one_execution_only():
    table = SlotTable(1)
    mine, other = new_id(), new_id()
    table.hold(0, [mine])
    table.signal(0, other, Signal.CANCEL)
    assert table.signalled(0, mine) is None
    for _ in range(40):
        table.signal(0, new_id(), Signal.PAUSE)
    table.signal(0, mine, Signal.CANCEL)
    assert table.signalled(0, mine) is Signal.CANCEL


def test_what_is_taken_back_is_not_run():
    table = SlotTable(1)
    held = [new_id() for _ in range(4)]
    table.hold(0, held)
    assert table.run(0, 0, 1.0)
    assert table.revoke_rest(0) == held[1:]
    assert not table.run(0, 1, 1.0)
    table.hold(0, held[2:])
    assert table.run(0, 0, 1.0)


def test_reads_are_whole_while_a_child_writes():
    table = SlotTable(1)
    batches = [[new_id() for _ in range(size)] for size in (1, 50, 7)]
    pid = os.fork()
    if pid == 0:
        for index in range(6000):
            table.hold(0, batches[index % 3])
        os._exit(0)
    whole = 0
    while not child_is_gone(pid):
        seen = table.read(0)
        if seen:
            assert seen.executions in batches
            whole += 1
    os.waitpid(pid, 0)
    assert whole > 0
