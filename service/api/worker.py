"""An API process: `python -m service.api.worker NUMBER HOST PORT FILE`.

`tfbbb serve` starts it, with the address on which all API processes listen, and the
file of `service.predicting.refreshes`, which they share. The process ends at SIGTERM,
and when its standard input ends, which is when the parent ends.
"""

import logging
import os
import signal
import socket
import sys
import threading
from pathlib import Path


def main() -> None:
    """Answers requests until the parent stops or ends."""
    # Imported here: the child processes of this one import this module too.
    from service.api.app import create_app
    from service.api.server import run, server
    from service.predicting.refreshes import Refreshes
    from service.shared.logs import configure_logging
    from service.shared.settings import Settings

    number, host, port, file = int(sys.argv[1]), *sys.argv[2:4], Path(sys.argv[4])
    threading.Thread(target=_stop_with_the_parent, daemon=True).start()
    configure_logging(f"api {number}")
    settings = Settings.from_environment()
    refreshes = Refreshes(file, number, settings.workers)
    worker = server(create_app(settings, refreshes=refreshes))
    if number:
        # The first one says that the service starts, and on which port.
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    # Each listens on a socket of its own, so that the kernel spreads the connections.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    address = host, int(port)
    run(
        worker,
        socket.create_server(address, family=family, backlog=2048, reuse_port=True),
    )


def _stop_with_the_parent() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
