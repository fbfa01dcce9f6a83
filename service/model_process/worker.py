"""A model process: `python -m service.model_process.worker SOCKET`.

The API sends requests over the socket and keeps the standard input of this process
open; the process ends when its input ends. Models are computed here and not in the API
process, so that the API answers whatever they take. There may be several of these
processes, each the home of some models. TensorFlow is imported only for a model that
NumPy cannot compute.
"""

import gc
import logging
import os
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from service.model_process.adoption import Ledger
from service.model_process.connection import Connection
from service.model_process.operations import Operations
from service.model_process.registry import ModelRegistry
from service.shared.database import Database
from service.shared.logs import configure_logging
from service.shared.settings import Settings
from service.shared.store import open_store

logger = logging.getLogger(__name__)


# Allocations before a collection, and younger collections before each older one.
_GC_THRESHOLDS = (10_000, 20, 100)
# Operations other than predictions, such as loading a version, that run together.
_OPERATIONS = 8


def listen(path: Path) -> socket.socket:
    """Opens the socket; replaces a socket that a dead process left."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(socket.SOMAXCONN)
    return listener


def serve(listener: socket.socket, operations: Operations) -> None:
    """Accepts and serves connections for ever."""
    executor = ThreadPoolExecutor(_OPERATIONS, "operations")
    while True:
        accepted, _ = listener.accept()
        connection = Connection(accepted, operations, executor)
        threading.Thread(target=connection.serve, daemon=True).start()


def _exit_with_parent(operations: Operations) -> None:
    # Not `sys.exit`, which would wait for running predictions and for the clean-up of
    # TensorFlow.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    operations.predictions.close()
    os._exit(0)


def _watch(registry: ModelRegistry, settings: Settings) -> None:
    try:
        registry.watch(threading.Event(), settings.poll_seconds)
    except Exception:
        # The parent restarts the process.
        logger.exception("could not serve the models")
        os._exit(1)


def main() -> None:
    """Runs the process until its parent ends."""
    # A terminal and a process supervisor signal the whole process group. The parent
    # finishes running requests first, and then closes the input of this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    configure_logging("models")
    settings = Settings.from_environment()
    database = Database(settings.effective_database_url)
    store = open_store(settings)
    ledger = Ledger(database, store)
    # The API decides of which models this process is the home.
    registry = ModelRegistry(store, ledger, ())
    path = Path(sys.argv[1])
    operations = Operations(registry, settings)
    threading.Thread(target=_exit_with_parent, args=(operations,), daemon=True).start()
    # In a separate thread, so that the process can answer that it is not ready while
    # models are loaded.
    threading.Thread(
        target=_watch, args=(registry, settings), name="registry", daemon=True
    ).start()
    # The objects made so far live until the process ends. A thousand lists of warnings
    # would have a garbage collection visit them.
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    serve(listen(path), operations)


if __name__ == "__main__":
    main()
