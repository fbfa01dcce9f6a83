"""The time that a training may take."""

import math
import time

# Of a training: the time of the explanations in its report.
_SHARE_OF_REPORT, _SECONDS_OF_REPORT = 0.05, 1.0
_SHARE_OF_JUDGE = 0.05
_LEAST_SECONDS = 1.0
_SHARE_FOR_MORE = 0.5


class TimeLimit:
    """The time of a training, None for no limit; `elapsed` seconds have passed before.

    Example:

    >>> limit = TimeLimit(60.0)
    >>> 29.0 < limit.of_steps(0, networks=2, taken=0.0) <= 30.0
    True
    """

    def __init__(self, seconds: float | None, elapsed: float = 0.0) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._began = time.monotonic() - elapsed

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    @property
    def has_time_for_more(self) -> bool:
        """Whether half of the time is left, enough to train another network."""
        return self.elapsed <= _SHARE_FOR_MORE * self.seconds

    def rest(self) -> "TimeLimit":
        """Returns a limit of the time that is left, at least a little."""
        left = max(self.seconds - self.elapsed, _LEAST_SECONDS)
        return TimeLimit(None if math.isinf(left) else left)

    def of_steps(self, number: int, networks: int, taken: float) -> float:
        """Returns the time for a network and what follows it, possibly negative.

        The time of the report is left.
        """
        reserved = min(_SECONDS_OF_REPORT, _SHARE_OF_REPORT * self.seconds)
        steps = self.seconds - reserved
        return steps * (number + 1) / networks - max(taken, self.elapsed)

    def of_judge(self) -> float:
        """Returns the time for a model that judges the network, possibly negative."""
        return min(_SHARE_OF_JUDGE * self.seconds, self.seconds - self.elapsed)

    def of_report(self) -> float:
        """Returns the time for the explanations of the report, possibly negative."""
        return min(
            max(_SECONDS_OF_REPORT, _SHARE_OF_REPORT * self.elapsed),
            _SHARE_OF_REPORT * self.seconds,
            self.seconds - self.elapsed,
        )
