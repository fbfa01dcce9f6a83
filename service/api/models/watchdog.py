"""Kills a model process that does not answer, so that it is started anew."""

import logging
import select
import socket
import threading
import time
from pathlib import Path

import psutil

from service.api.supervision import SupervisedProcess
from service.shared.frames import Frame, receive, send

logger = logging.getLogger(__name__)

# The import of TensorFlow from a slow disk may hold the interpreter as long.
_SECONDS_TO_IMPORT = 120.0
# Pause between attempts to connect. Until a process has answered once, it may be
# importing: the sooner it is asked, the sooner one that hangs is known to do so.
_SECONDS_TO_CONNECT = 0.1
# A process that computes for this share of the time hangs only if it does not answer
# for so many times as long: where others take the cores, it is merely slow.
_ALIVE, _PATIENCE = 0.02, 10


class Watchdog:
    """Asks the model process for a heartbeat, on a connection of its own.

    A process that is stopped or hangs does not end by itself. The heartbeat is answered
    whatever the process computes or loads. A process that is short of cores gets more
    time.
    """

    def __init__(self, process: SupervisedProcess, path: Path, seconds: float) -> None:
        self._process = process
        self._path = path
        self._seconds = seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._watch, name="the watchdog", daemon=True
        )

    def start(self) -> None:
        """Watches until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Stops watching; does not wait for a heartbeat that is under way."""
        self._stopping.set()

    def _watch(self) -> None:
        while not self._stopping.wait(_SECONDS_TO_CONNECT):
            try:
                self._follow(self._process.pid)
            except OSError:
                continue  # The process has ended, or does not listen yet.

    def _follow(self, pid: int | None) -> None:
        """Watches one process until it ends or does not answer."""
        seconds = _SECONDS_TO_IMPORT
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SECONDS_TO_IMPORT)
            connection.connect(str(self._path))
            with connection.makefile("rb") as stream:
                while not self._stopping.is_set():
                    begin = time.monotonic()
                    send(connection, Frame({"operation": "heartbeat", "id": 0}))
                    if not self._is_answered(connection, pid, seconds):
                        logger.error(
                            "%s did not answer in %.1f s; killing it",
                            self._process.name,
                            time.monotonic() - begin,
                        )
                        self._process.kill(pid)
                        return
                    if (response := receive(stream)) is None:
                        return
                    importing = response.header["is_importing"]
                    seconds = _SECONDS_TO_IMPORT if importing else self._seconds
                    self._stopping.wait(self._seconds / 3)

    def _is_answered(
        self, connection: socket.socket, pid: int | None, seconds: float
    ) -> bool:
        """Waits for the answer to a heartbeat, longer while the process computes."""
        for _ in range(_PATIENCE):
            before = _seconds_computed(pid)
            if select.select([connection], [], [], seconds)[0]:
                return True
            if _seconds_computed(pid) - before < _ALIVE * seconds:
                return False
        return False


def _seconds_computed(pid: int | None) -> float:
    """Returns the processor time of a process; 0 if it has ended."""
    if pid is None:
        return 0.0
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)
