"""One connection of the API, which carries many requests at a time."""

import logging
import queue
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import BinaryIO

from service.model_process.operations import Operations
from service.model_process.predictions import Prediction
from service.shared.errors import InvalidRequest, ServiceError
from service.shared.frames import Frame, receive, send
from service.shared.json_types import JsonObject
from tfbbb.export.manifest import InputError

logger = logging.getLogger(__name__)

# Responses that are ready are sent together, up to this number.
_MOST_TOGETHER = 64


class Connection:
    """Serves the requests of one connection until the API disconnects.

    One thread receives, so that a heartbeat is answered whatever is computed, and
    another writes responses in the order in which they are ready.
    """

    def __init__(
        self,
        connection: socket.socket,
        operations: Operations,
        executor: ThreadPoolExecutor,
    ) -> None:
        self._connection = connection
        self._operations = operations
        self._executor = executor
        self._predictions: dict[int, Prediction] = {}
        self._ready: queue.SimpleQueue[Callable[[], Frame] | None] = queue.SimpleQueue()

    def serve(self) -> None:
        """Receives requests until the API disconnects; then drops what it waits for."""
        writing = threading.Thread(target=self._write, daemon=True)
        writing.start()
        try:
            with self._connection.makefile("rb") as stream:
                while self._receive(stream):
                    pass
        except OSError:
            pass  # The API has disconnected.
        finally:
            for prediction in list(self._predictions.values()):
                prediction.cancel()
            self._ready.put(None)
            writing.join()
            self._connection.close()

    def _receive(self, stream: BinaryIO) -> bool:
        """Starts the next request; returns False if the API has disconnected."""
        try:
            request = receive(stream)
        except ValueError:
            logger.exception("could not read a request")
            return True
        if request is None:
            return False
        try:
            self._start(request)
        except Exception as error:
            self._reply(request.header, partial(_raise, error))
        return True

    def _start(self, request: Frame) -> None:
        number, operation = request.header["id"], request.header["operation"]
        if operation == "cancel":
            if (cancelled := self._predictions.pop(number, None)) is not None:
                cancelled.cancel()
        elif operation == "predict":
            prediction = Prediction(
                request, lambda write: self._reply(request.header, write)
            )
            self._predictions[number] = prediction
            self._operations.predictions.start(prediction)
        elif operation in ("heartbeat", "keep"):
            self._run(request)
        else:
            self._executor.submit(self._run, request)

    def _run(self, request: Frame) -> None:
        response = _result(request.header, lambda: self._operations.answer(request))
        self._reply(request.header, lambda: response)

    def _reply(self, header: JsonObject, write: Callable[[], Frame]) -> None:
        """Queues a response, written by a function or its error."""
        self._ready.put(lambda: self._frame(header, write))

    def _frame(self, header: JsonObject, write: Callable[[], Frame]) -> Frame:
        number = header["id"]
        self._predictions.pop(number, None)
        frame = _result(header, write)
        return Frame(frame.header | {"id": number}, frame.body)

    def _write(self) -> None:
        try:
            while (write := self._ready.get()) is not None:
                frames = [write()]
                while len(frames) < _MOST_TOGETHER and not self._ready.empty():
                    more = self._ready.get()
                    if more is None:
                        return
                    frames.append(more())
                send(self._connection, *frames)
        except OSError:
            # The API has disconnected, which the other thread notices too.
            return


def _raise(error: Exception) -> Frame:
    raise error


def _result(header: JsonObject, write: Callable[[], Frame]) -> Frame:
    try:
        return write()
    except ServiceError as error:
        return Frame(error.to_message())
    except InputError as error:
        return Frame(InvalidRequest(str(error), error.column).to_message())
    except Exception:
        logger.exception("%s failed", header)
        return Frame({"error": "bug"})
