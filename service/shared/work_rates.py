"""The work per second that each key may ask for."""

import fcntl
import math
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from service.shared.errors import RateExceeded

# A key that asked for nothing this long may ask for as many seconds' work at once.
_SECONDS_OF_CREDIT = 10.0
# The directory of the accounts, beside the sockets of the model processes.
RATES = "rates"
# What a service without keys counts all requests as.
_ANYBODY = "anybody"


class Payer(NamedTuple):
    """A key that asks for predictions.

    Args:
        key_id: Id of the key; None in a service without keys.
        work_per_second: Its rate, in units of work; None if there is no limit.
    """

    key_id: str | None
    work_per_second: float | None


class _Account(NamedTuple):
    """The state of a key.

    Args:
        credit: The work that it may ask for.
        at: The time at which that was counted.
        per_second: Its rate.
    """

    credit: float
    at: float
    per_second: float

    @property
    def most(self) -> float:
        """The most credit."""
        return self.per_second * _SECONDS_OF_CREDIT

    def grown(self, now: float) -> Self:
        """Returns the account with the credit of a later time."""
        credit = self.credit + self.per_second * (now - self.at)
        return self._replace(credit=min(self.most, credit), at=now)

    def minus(self, work: float) -> Self:
        """Returns the account without some work."""
        # A correction may give back what has grown anew meanwhile.
        return self._replace(credit=min(self.most, self.credit - work))


_STATE = struct.Struct("ddd")


class WorkRates:
    """A credit of work for each key, which grows with time up to a most.

    The model processes share one file per key, whose lock makes a check and a charge
    one step: however many requests come at the same time, wherever they are computed,
    a key gets its rate exactly. A process that ends frees its locks.
    """

    def __init__(
        self,
        directory: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        directory.mkdir(exist_ok=True)
        self._directory = directory
        self._clock = clock

    def charge(self, payer: Payer, work: float) -> None:
        """Takes work from the credit of a key.

        A request of more work than the most credit needs the most, and leaves a debt.
        """
        per_second = payer.work_per_second
        if per_second is None:
            return
        needed = min(work, per_second * _SECONDS_OF_CREDIT)
        missing = needed - self._change(payer.key_id, work, needed, per_second)
        if missing > 0:
            raise RateExceeded(
                f"The key has used up its {per_second:g} units of work per second "
                "(TFBBB_MAX_WORK_PER_SECOND, or a limit of its own), which are rows × "
                f"draws × answers; ask again in {math.ceil(missing / per_second)} s. "
                f"Received: {work:g} units",
                missing / per_second,
            )

    def correct(self, payer: Payer, work: float) -> None:
        """Takes more work from the credit of a key, or gives back a negative amount."""
        if payer.work_per_second is not None and work:
            self._change(payer.key_id, work, -math.inf, payer.work_per_second)

    def _change(
        self, key_id: str | None, work: float, needed: float, per_second: float
    ) -> float:
        """Takes work if the credit is as large as needed; returns the credit before."""
        path = self._directory / (key_id or _ANYBODY)
        with _locked(path) as file:
            state, now = os.pread(file, _STATE.size, 0), self._clock()
            if state:
                account = _Account(*_STATE.unpack(state))
            else:
                account = _Account(per_second * _SECONDS_OF_CREDIT, now, per_second)
            account = account._replace(per_second=per_second).grown(now)
            if account.credit >= needed:
                state = _STATE.pack(*account.minus(work))
                os.pwrite(file, state, 0)
            return account.credit


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Opens and locks the file of a key."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)
