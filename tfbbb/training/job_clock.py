"""The stages of a training, and the time that is left of it."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tfbbb.base.types import JsonObject
from tfbbb.training.progress import Progress

WAITING, LOADING, TRAINING = "waiting for a worker", "loading TensorFlow", "training"


@dataclass(frozen=True)
class Part:
    """A part of a stage, and the seconds that it takes on a processor of speed 1.

    It takes `first` seconds more in a process that has not trained before, and
    `per_thousand` more for each thousand rows that measure the model.
    """

    stage: str
    seconds: float
    first: float = 0.0
    per_thousand: float = 0.0
    # Whether every training has it.
    certain: bool = True
    # Whether it takes steps, whose reports tell how many are left.
    of_steps: bool = False
    # Whether it follows the last step.
    after: bool = False


# In the order in which a training takes them.
PARTS = {
    "loading": Part(LOADING, 0.0, first=6.0),
    "reading": Part("reading the table", 0.05, per_thousand=0.01),
    "likelihood": Part("choosing a likelihood", 0.2, per_thousand=0.1),
    "network": Part("building the network", 0.1, first=0.1),
    "first step": Part(TRAINING, 1.2, first=0.4),
    "steps": Part(TRAINING, 8.0, of_steps=True),
    "choice": Part(TRAINING, 0.6, first=0.2, per_thousand=0.2),
    "baselines": Part(TRAINING, 0.5, per_thousand=0.4),
    "linear network": Part(TRAINING, 2.2, certain=False, of_steps=True),
    "more rows": Part(TRAINING, 3.4, certain=False, of_steps=True),
    "calibration": Part("calibrating", 0.8, per_thousand=0.3, after=True),
    "familiarity": Part("calibrating", 1.8, per_thousand=0.4, after=True),
    "judgement": Part("judging", 1.7, after=True),
    "report": Part("writing the report", 0.9, after=True),
    "model": Part("writing the model", 3.4, first=0.4, after=True),
    "version": Part("publishing the version", 0.5, after=True),
}
STAGES = (WAITING, *dict.fromkeys(part.stage for part in PARTS.values()))
# The logarithm of the speed of a processor is known to so much, before a part has been
# timed and after many seconds.
_SPREAD, _SPREAD_OF_TIMED = 0.9, 0.35
_SECONDS_BELIEVED = 1.0
# Steps are as fast as those before them, more or less.
_SPREAD_OF_STEPS = 0.1
# Of a part that takes longer than expected.
_LEAST_LEFT, _MOST_LEFT, _MOST_OVERDUE = 0.1, 0.5, 4.0
_LEAST_WIDTH = 0.1

# What this process has learned from earlier trainings: whether it was one, and how many
# times the expected seconds its parts took.
_has_trained = False
_slowness: float | None = None


@dataclass(frozen=True)
class TimeLeft:
    """What a training is at, and least and most seconds that it takes yet.

    The share that is done never falls, and is 1 only at the end.
    """

    stage: str
    done: float
    least: float
    most: float
    elapsed: float

    def to_json(self) -> JsonObject:
        """Returns the fields that events of a job have."""
        return {
            "stage": self.stage,
            "done": round(self.done, 4),
            "seconds_left": [round(self.least, 1), round(self.most, 1)],
            "elapsed": round(self.elapsed, 1),
        }


class JobClock:
    """Times the parts of a training, and estimates what is left of it.

    The parts have expected durations. Those that are over tell how fast the machine is
    at present, and reports of steps how long the others take.

    `elapsed` are seconds that passed before, such as to start a process, and `seconds`
    those of each part that is over.

    Example:

    >>> clock = JobClock()
    >>> clock.begin("reading")
    >>> clock.left().stage
    'reading the table'
    """

    def __init__(
        self, elapsed: float = 0.0, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds: dict[str, float] = {}
        self._now = now
        self._began = now() - elapsed
        self._is_first = not _has_trained
        self._slowness = _slowness or 1.0
        self._rows = 0
        self._limit = math.inf
        self._part: str | None = None
        self._part_began = self._began
        self._skipped: set[str] = set()
        self._told: dict[str, float] = {}
        self._first_report: Progress | None = None
        self._report: Progress | None = None
        self._reported_at = self._began
        self._done = 0.0
        self._ended_at: float | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._now() - self._began

    @property
    def part(self) -> str | None:
        """The part that has begun last; None before the first one."""
        return self._part

    def begin(self, part: str) -> None:
        """Ends the present part and begins another one; parts between are skipped."""
        with self._lock:
            self._end_part()
            # The first one begins with the clock.
            self._part_began = self._now() if self.seconds else self._began
            self._part = part
            self._first_report = self._report = None

    def end(self) -> None:
        """Ends the last part, and the training."""
        global _has_trained, _slowness
        with self._lock:
            self._end_part()
            self._part, self._ended_at = None, self._now()
            _has_trained, _slowness = True, self._slowness

    def know(self, *, rows: int, most_seconds: float | None) -> None:
        """Sets what the durations depend on."""
        with self._lock:
            self._rows = rows
            self._limit = math.inf if most_seconds is None else most_seconds

    def expect(self, part: str, seconds: float) -> None:
        """Sets how long a part takes on a processor of speed 1."""
        with self._lock:
            self._told[part] = seconds

    def skip(self, *parts: str) -> None:
        """Says that parts which are not certain are not tried."""
        with self._lock:
            self._skipped.update(parts)

    def see(self, progress: Progress) -> None:
        """Takes a report of steps."""
        with self._lock:
            if self._part == "first step":
                self._end_part()
                self._part, self._part_began = "steps", self._now()
            before = self._report
            if before is None or progress.steps != before.steps:
                self._first_report = progress
            self._report, self._reported_at = progress, self._now()

    def seconds_from(self, first: str) -> float:
        """Returns the expected seconds of a part and of all certain ones after it.

        A processor that was fast so far may become slower.
        """
        with self._lock:
            names = list(PARTS)
            later = names[names.index(first) :]
            certain = [n for n in later if n == first or PARTS[n].certain]
            return max(self._slowness, 1.0) * sum(map(self._expected, certain))

    def left(self) -> TimeLeft:
        """Estimates the time that is left."""
        with self._lock:
            elapsed = (self._ended_at or self._now()) - self._began
            if self._ended_at is not None:
                return TimeLeft(STAGES[-1], 1.0, 0.0, 0.0, elapsed)
            least, most = self._range()
            middle = 0.5 * (least + most)
            self._done = max(self._done, elapsed / max(elapsed + middle, 1e-9))
            self._done = min(self._done, 0.999)
            part = PARTS.get(self._part or "loading", PARTS["loading"])
            return TimeLeft(part.stage, self._done, least, most, elapsed)

    def _end_part(self) -> None:
        if self._part is None:
            return
        took = self._now() - self._part_began
        self.seconds[self._part] = self.seconds.get(self._part, 0.0) + took
        self._slowness = self._slowness_by(self.seconds)

    def _slowness_by(self, seconds: Mapping[str, float]) -> float:
        """Returns how many times the expected seconds parts took, believed in part."""
        # The number of steps is not known before.
        names = [name for name in seconds if not PARTS[name].of_steps]
        took = _SECONDS_BELIEVED * (_slowness or 1.0) + sum(
            seconds[name] for name in names
        )
        return took / (_SECONDS_BELIEVED + sum(map(self._expected, names)))

    def _expected(self, name: str) -> float:
        if name in self._told:
            return self._told[name]
        part = PARTS[name]
        seconds = part.seconds + 1e-3 * part.per_thousand * self._rows
        return seconds + part.first * self._is_first

    def _range(self) -> tuple[float, float]:
        """Returns least and most seconds that are left."""
        timed = sum(self.seconds.values())
        unknown = math.exp(-timed / _SECONDS_BELIEVED)
        spread = _SPREAD_OF_TIMED + (_SPREAD - _SPREAD_OF_TIMED) * unknown
        least = most = least_after = most_after = 0.0
        slowness = self._slowness
        if self._part is not None:
            # A part that is overdue says that the machine is slow, up to a point.
            most_told = _MOST_OVERDUE * slowness * self._expected(self._part)
            spent = min(self._now() - self._part_began, most_told)
            so_far = {**self.seconds, self._part: spent}
            slowness = max(slowness, self._slowness_by(so_far))
            least, most = self._range_of_part(self._part, spread, slowness)
        names = list(PARTS)
        later = names if self._part is None else names[names.index(self._part) + 1 :]
        for name in later:
            part = PARTS[name]
            if name in self._skipped:
                continue
            expected = slowness * self._expected(name)
            factor = math.exp(_SPREAD if part.of_steps else spread)
            most += expected * factor
            if part.certain:
                least += expected / factor
            if part.after:
                least_after += expected / factor
                most_after += expected * factor
        if math.isfinite(self._limit):
            # The steps end in time for what follows them.
            until = self._limit - self.elapsed
            least = min(least, max(until, least_after))
            most = min(most, max(until, most_after))
        return least, max(most, least + _LEAST_WIDTH)

    def _range_of_part(
        self, name: str, spread: float, slowness: float
    ) -> tuple[float, float]:
        """Returns least and most seconds that are left of the present part."""
        spent = self._now() - self._part_began
        first, report = self._first_report, self._report
        if PARTS[name].of_steps and report is not None and first is not None:
            taken = report.step - first.step
            if taken > 0:
                pace = (report.seconds - first.seconds) / taken
                left = pace * (report.steps - report.step)
                left = max(left - (self._now() - self._reported_at), 0.0)
                width = _SPREAD_OF_STEPS + _SPREAD * math.exp(-spent)
                return left * math.exp(-width), left * math.exp(width)
        expected = slowness * self._expected(name)
        return (
            max(expected * math.exp(-spread) - spent, _LEAST_LEFT * spent),
            max(expected * math.exp(spread) - spent, _MOST_LEFT * spent),
        )
