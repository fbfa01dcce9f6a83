"""When the API processes of a machine have read the models directory."""

import asyncio
import mmap
import time
from pathlib import Path

_SECONDS_TO_WAIT = 10.0
_SECONDS_BETWEEN = 0.02
_SLOT = 8


class Refreshes:
    """The times of the last refreshes, in a file that all API processes have mapped.

    The first slot has the time from which a refresh is wanted, and each process has one
    of the others, of `time.monotonic_ns`. A process without others needs no file.
    """

    def __init__(
        self, file: Path | None = None, number: int = 0, processes: int = 1
    ) -> None:
        size = _SLOT * (1 + processes)
        if file is None:
            memory = mmap.mmap(-1, size)
        else:
            with file.open("a+b") as opened:
                opened.truncate(size)
                memory = mmap.mmap(opened.fileno(), size)
        self._times = memoryview(memory).cast("Q")
        self.number = number
        self._place = 1 + number

    @property
    def is_wanted(self) -> bool:
        """Whether a process waits for a refresh of this one."""
        return self._times[0] > self._times[self._place]

    def note(self, began: int) -> None:
        """Notes that this process has refreshed, from a time of `monotonic_ns`."""
        self._times[self._place] = began

    async def wait_for_all(self) -> None:
        """Waits until all processes have refreshed from now on; ten seconds at most."""
        now = time.monotonic_ns()
        self._times[0] = now
        end = time.monotonic() + _SECONDS_TO_WAIT
        while min(self._times[1:]) < now and time.monotonic() < end:
            await asyncio.sleep(_SECONDS_BETWEEN)
