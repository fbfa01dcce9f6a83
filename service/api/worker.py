"""A further API process: `python -m service.api.worker LISTENER DIRECTORY`.

The first API process starts it, and gives it the number of the listening socket and the
directory of the sockets of the model processes. The process ends at SIGTERM, and when
its standard input ends, which is when the first process ends.
"""

import logging
import os
import signal
import socket
import sys
import threading
from pathlib import Path

from service.api.app import create_app
from service.api.server import run, server
from service.shared.logs import configure_logging
from service.shared.settings import Settings


def main() -> None:
    """Answers requests until the first API process stops or ends."""
    listener, directory = int(sys.argv[1]), Path(sys.argv[2])
    threading.Thread(target=_stop_with_the_first, daemon=True).start()
    configure_logging("api")
    settings = Settings.from_environment()
    worker = server(create_app(settings, directory=directory))
    # The first process has said that the service starts, and on which port.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    run(worker, socket.socket(fileno=listener))


def _stop_with_the_first() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
