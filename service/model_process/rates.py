"""The work per second that each key may ask for."""

import fcntl
import math
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

from service.shared.errors import RateExceeded

# The credit of a key, and the time at which it was counted.
_STATE = struct.Struct("dd")
# A key that asked for nothing this long may ask for as many seconds' work at once.
_SECONDS_OF_CREDIT = 10.0
# What a service without keys counts all requests as.
_ANYBODY = "anybody"


class WorkRates:
    """A credit of work for each key, which grows with time up to a most.

    The model processes share one file per key, whose lock makes a check and a charge
    one step: however many requests come at the same time, wherever they are computed,
    a key gets its rate exactly. A process that ends frees its locks.

    Args:
        directory: A directory of the files.
        per_second: Units of work; None if there is no limit.
        clock: Returns a time that is the same in all processes of the machine.
    """

    def __init__(
        self,
        directory: Path,
        per_second: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._per_second = per_second
        self._clock = clock

    def charge(self, key_id: str | None, work: float) -> None:
        """Takes work from the credit of a key.

        A request of more work than the most credit needs the most, and leaves a debt.

        Raises:
            RateExceeded: If the credit is too small; nothing is taken.
        """
        if self._per_second is None:
            return
        needed = min(work, self._per_second * _SECONDS_OF_CREDIT)
        missing = needed - self._change(key_id, work, needed, self._per_second)
        if missing > 0:
            raise RateExceeded(
                f"The key may ask for {self._per_second:g} units of work per second "
                "(TFBBB_MAX_WORK_PER_SECOND), which are rows × draws × answers; retry "
                "after the seconds of `Retry-After`, or ask for fewer draws. "
                f"Received: {work:g} units",
                missing / self._per_second,
            )

    def correct(self, key_id: str | None, work: float) -> None:
        """Takes more work from the credit of a key, or gives back a negative amount."""
        if self._per_second is not None and work:
            self._change(key_id, work, -math.inf, self._per_second)

    def _change(
        self, key_id: str | None, work: float, needed: float, per_second: float
    ) -> float:
        """Takes work if the credit is as large as needed; returns the credit before."""
        most = per_second * _SECONDS_OF_CREDIT
        path = self._directory / (key_id or _ANYBODY)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            state, now = os.pread(file, _STATE.size, 0), self._clock()
            before, at = _STATE.unpack(state) if state else (most, now)
            credit: float = min(most, before + per_second * (now - at))
            if credit >= needed:
                # A correction may give back what has grown anew meanwhile.
                os.pwrite(file, _STATE.pack(min(most, credit - work), now), 0)
            return credit
        finally:
            os.close(file)
