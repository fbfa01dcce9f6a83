"""The model process: `python -m service.model_process.worker SOCKET`.

The API sends requests over the socket and keeps the standard input of this process
open; the process ends when its input ends. TensorFlow runs here and not in the API
process, so that the API answers whatever TensorFlow does.
"""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from service.model_process.adoption import Ledger
from service.model_process.operations import Operations
from service.model_process.recorder import PredictionRecorder
from service.model_process.registry import ModelRegistry
from service.shared.database import Database
from service.shared.errors import InvalidRequest, ServiceError
from service.shared.frames import Frame, receive, send
from service.shared.settings import Settings
from tfbbb.export.manifest import InputError

logger = logging.getLogger(__name__)

# The operations that compute predictions.
_COMPUTATIONS = ("predict", "score")


class Worker:
    """Serves requests from a socket, one at a time per connection.

    Args:
        answer: Computes the response to a request, in the thread of its connection.
        threads: Number of predictions that are computed at the same time.
    """

    def __init__(self, answer: Callable[[Frame], Frame], threads: int) -> None:
        self._compute = answer
        self._predicting = threading.BoundedSemaphore(threads)

    @staticmethod
    def listen(path: Path) -> socket.socket:
        """Opens the socket; replaces a socket that a dead process left."""
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(socket.SOMAXCONN)
        return listener

    def serve(self, listener: socket.socket) -> None:
        """Accepts and serves connections for ever."""
        while True:
            connection, _ = listener.accept()
            threading.Thread(
                target=self._serve, args=(connection,), daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while (request := receive(connection)) is not None:
                    send(connection, self._answer(request, connection))
            except OSError:
                return  # The client has disconnected.

    def _answer(self, request: Frame, connection: socket.socket) -> Frame:
        try:
            if request.header["operation"] not in _COMPUTATIONS:
                return self._compute(request)
            with self._predicting:
                _check_connected(connection)
                return self._compute(request)
        except ServiceError as error:
            return Frame(error.to_message())
        except InputError as error:
            return Frame(InvalidRequest(str(error)).to_message())
        except OSError:
            raise
        except Exception:
            logger.exception("%s failed", request.header)
            return Frame({"error": "bug"})


def _check_connected(connection: socket.socket) -> None:
    """Raises `OSError` if the client has disconnected while its request waited."""
    try:
        waiting = connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return
    if not waiting:
        raise ConnectionResetError


def _exit_with_parent() -> None:
    # Not `sys.exit`, which would wait for running predictions and for the clean-up of
    # TensorFlow.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(0)


def _watch(registry: ModelRegistry, settings: Settings) -> None:
    try:
        registry.watch(threading.Event(), settings.poll_seconds)
    except Exception:
        # TensorFlow could not be imported; the parent restarts the process.
        logger.exception("could not serve the models")
        os._exit(1)


def main() -> None:
    """Runs the process until its parent ends."""
    # A terminal and a process supervisor signal the whole process group. The parent
    # finishes running requests first, and then closes the input of this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    settings = Settings.from_environment()
    database = Database(settings.effective_database_url)
    registry = ModelRegistry(settings.models, Ledger(database))
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    # The messages of libraries about graphs do not help an operator.
    logging.getLogger("absl").setLevel(logging.ERROR)
    # In a separate thread, so that the process can answer that it is not ready while
    # TensorFlow is imported.
    threading.Thread(
        target=_watch, args=(registry, settings), name="registry", daemon=True
    ).start()
    recorder = PredictionRecorder(database, settings)
    operations = Operations(registry, settings, recorder)
    worker = Worker(operations.answer, settings.threads)
    worker.serve(worker.listen(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
