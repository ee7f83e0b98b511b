"""Two platforms that start at the same moment never choose the same port."""

import subprocess
import sys

from tests.support.platform import REPOSITORY

CHOOSE = "import sys; from devos.stack import paths; print(paths.free_port(18000), flush=True); sys.stdin.read()"


def test_ports_chosen_at_once_differ_and_are_free_again_afterwards():
    def chooser():
        return subprocess.Popen(
            [sys.executable, "-c", CHOOSE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
        )

    def port_of(process):
        return int(process.stdout.readline())

    running = [chooser() for _ in range(4)]
    ports = [port_of(process) for process in running]
    assert len(set(ports)) == 4
    for process in running:
        process.kill()
        process.communicate()
    again = chooser()
    assert port_of(again) == min(ports)
    again.communicate()
