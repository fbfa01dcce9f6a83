"""The process that holds the models: `python -m service.model_process.worker SOCKET`.

Its parent asks over the socket, keeps its standard input open, and is taken for dead
when that ends. TensorFlow lives here and not in the process that speaks HTTP: whatever
it does, the service answers.
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
from service.model_process.registry import ModelRegistry
from service.shared.database import Database
from service.shared.errors import InvalidRequest, ServiceError
from service.shared.frames import Frame, receive, send
from service.shared.settings import Settings
from tfbbb.export.input_error import InputError

logger = logging.getLogger(__name__)


class Worker:
    """Answers questions from a socket; each connection asks one at a time.

    Args:
        answer: Answers a question, in a thread of the connection's.
        threads: How many predictions are computed at the same time.
    """

    def __init__(self, answer: Callable[[Frame], Frame], threads: int) -> None:
        self._compute = answer
        self._predicting = threading.BoundedSemaphore(threads)

    @staticmethod
    def listen(path: Path) -> socket.socket:
        """Opens the socket, in the place of one that was left there."""
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(socket.SOMAXCONN)
        return listener

    def serve(self, listener: socket.socket) -> None:
        """Accepts and answers connections, for ever."""
        while True:
            connection, _ = listener.accept()
            threading.Thread(
                target=self._serve, args=(connection,), daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while (question := receive(connection)) is not None:
                    send(connection, self._answer(question, connection))
            except OSError:
                return  # Nobody waits for the answer any more.

    def _answer(self, question: Frame, connection: socket.socket) -> Frame:
        try:
            if question.header["operation"] != "predict":
                return self._compute(question)
            with self._predicting:
                _check_anybody_waits(connection)
                return self._compute(question)
        except ServiceError as error:
            return Frame(error.to_message())
        except InputError as error:
            return Frame(InvalidRequest(str(error)).to_message())
        except OSError:
            raise
        except Exception:
            logger.exception("%s failed", question.header)
            return Frame({"error": "bug"})


def _check_anybody_waits(connection: socket.socket) -> None:
    """Raises an `OSError` if the other side has hung up while the question waited."""
    try:
        waiting = connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return
    if not waiting:
        raise ConnectionResetError


def _end_with_the_parent() -> None:
    # Not `sys.exit`: nobody is left to wait for TensorFlow's clean-up, and a
    # prediction that is still computed has nobody to go to.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(0)


def _watch(registry: ModelRegistry, settings: Settings) -> None:
    try:
        registry.watch(threading.Event(), settings.poll_seconds)
    except Exception:
        # Without TensorFlow there is nothing to wait for: the parent starts another.
        logger.exception("the models can't be served")
        os._exit(1)


def main() -> None:
    """Runs the process until its parent ends."""
    # A terminal and a process supervisor signal the whole group: requests that are
    # being answered are finished first, and the parent says when that is.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    settings = Settings.from_environment()
    database = Database(settings.effective_database_url)
    registry = ModelRegistry(settings.models, Ledger(database))
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    # What libraries say of the graphs of models tells an operator nothing.
    logging.getLogger("absl").setLevel(logging.ERROR)
    # In a thread of its own, so that the process answers, if only that it is not
    # ready, while TensorFlow is imported.
    threading.Thread(
        target=_watch, args=(registry, settings), name="registry", daemon=True
    ).start()
    operations = Operations(registry, settings)
    worker = Worker(operations.answer, settings.threads)
    worker.serve(worker.listen(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
