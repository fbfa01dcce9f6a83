"""Reads and writes large bodies in processes of their own.

To parse 30 MB of JSON holds the interpreter of a process for a second, in which it
answers nothing else.
"""

import logging
import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import ParamSpec, TypeVar

from service.shared.errors import Unavailable

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger(__name__)

# Answers with more numbers are worth the way to another process.
LARGE_ANSWER = 2**14
_PROCESSES = 2
_SECONDS_TO_END = 1.0
# Small predictions go first where both want a core.
_NICENESS = 5


class LargeBodies:
    """Processes that run functions of large bodies; started at the first call."""

    def __init__(self) -> None:
        self._executor: ProcessPoolExecutor | None = None
        self._changing = threading.Lock()

    def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs a function in another process, and waits for its result."""
        executor = self._running()
        try:
            return executor.submit(function, *args, **kwargs).result()
        except BrokenProcessPool:
            with self._changing:
                if self._executor is executor:
                    self._executor = None
            raise Unavailable(
                "The process that reads large bodies ended; send fewer rows at a time."
            ) from None

    def close(self) -> None:
        """Ends the processes; waits for a function that runs, but not for long.

        Python removes the semaphores of a pool when it is shut down, and otherwise
        warns about them when this process has ended.
        """
        with self._changing:
            executor, self._executor = self._executor, None
        if executor is not None:
            ending = threading.Thread(
                target=executor.shutdown, kwargs={"cancel_futures": True}, daemon=True
            )
            ending.start()
            ending.join(_SECONDS_TO_END)

    def _running(self) -> ProcessPoolExecutor:
        with self._changing:
            if self._executor is None:
                self._executor = ProcessPoolExecutor(
                    _PROCESSES,
                    # TensorFlow hangs in a process that was forked.
                    mp_context=multiprocessing.get_context("spawn"),
                    initializer=_initialize,
                )
            return self._executor


def _initialize() -> None:
    os.nice(_NICENESS)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(0)
