"""``python -m devos.plugins.web.sample_site --port N``: serve until SIGTERM, Ctrl-C or the death of the parent."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from http.server import ThreadingHTTPServer

from devos.plugins.web.sample_site import make_server

_LOOK_AT_PARENT_S = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(description="Serve the sample web site that ships with DevOS.")
    parser.add_argument("--port", type=int, required=True, help="TCP port to listen on")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: loopback only)")
    wanted = parser.parse_args()
    parent = os.getppid()
    try:
        server = make_server(wanted.port, wanted.host)
    except (OSError, OverflowError) as error:
        parser.exit(2, f"cannot listen on {wanted.host}:{wanted.port}: {error}\n")
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    signal.signal(signal.SIGINT, lambda *_: ended.set())
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
    _serve_until(ended, parent, server)
    return 0


def _serve_until(ended: threading.Event, parent: int, server: ThreadingHTTPServer) -> None:
    while not ended.wait(_LOOK_AT_PARENT_S) and os.getppid() == parent:
        pass
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    sys.exit(main())
