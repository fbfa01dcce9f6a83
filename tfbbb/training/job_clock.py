"""The progress and the stages of a training, the time that is left, and its limit."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tfbbb.base.types import JsonObject

WAITING, LOADING, TRAINING = "waiting for a worker", "loading TensorFlow", "training"


@dataclass(frozen=True)
class Progress:
    """One report of a training.

    `saved_step` is that of the latest checkpoint, 0 without one. At the end of an
    epoch, the figures are `loss`, `nll` and `kl`, means over the steps since the last
    such report, and `val_nll` if it was measured.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    saved_step: int = 0
    seconds: float = 0.0
    stage: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)


class Interrupted(Exception):
    """Training was asked to stop; it continues from a checkpoint, or starts again."""


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


# In the order in which a training takes them.
PARTS = {
    "loading": Part(LOADING, 0.0, first=4.0),
    "reading": Part("reading the table", 0.05, per_thousand=0.01),
    "likelihood": Part("choosing a likelihood", 0.2, per_thousand=0.02),
    "network": Part("building the network", 0.1, first=0.1),
    "first step": Part(TRAINING, 1.5, first=0.3),
    "steps": Part(TRAINING, 7.0, of_steps=True),
    "choice": Part(TRAINING, 0.5, first=0.1, per_thousand=0.9),
    "baselines": Part(TRAINING, 0.4, per_thousand=0.3),
    "linear network": Part(TRAINING, 2.2, certain=False, of_steps=True),
    "after the choice": Part(TRAINING, 3.5, certain=False, of_steps=True),
    "calibration": Part("calibrating", 1.5, per_thousand=0.15),
    "familiarity": Part("calibrating", 1.7),
    "judgement": Part("judging", 0.7, per_thousand=0.05),
    "report": Part("writing the report", 1.0),
    "model": Part("writing the model", 2.7, first=0.3),
    "version": Part("publishing the version", 0.5),
}
STAGES = (WAITING, *dict.fromkeys(part.stage for part in PARTS.values()))
# What is left is known to a factor of `1 + _SPREAD` after some seconds of timed parts,
# and to one more before.
_SPREAD, _SECONDS_BELIEVED = 0.3, 1.0
# Of a part that takes longer than expected: what is left of it, of the time it took,
# and how slow it says that the machine is.
_LEAST_LEFT, _MOST_LEFT, _MOST_OVERDUE = 0.1, 0.35, 4.0
_LEAST_WIDTH = 0.1
# Of the limit: the most for a judgement or a report, and what is enough to train on.
_SHARE_OF_REPORT, _SHARE_FOR_MORE = 0.05, 0.5
# What follows may take longer than parts before it say.
_RESERVE = 1.15

# Whether this process has ended a training.
_has_trained = False


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
    """Times the parts of a training, estimates what is left, and keeps its limit.

    Parts that are over tell how fast the machine is at present, and reports of steps
    how long the others take. `elapsed` are seconds that passed before, `seconds` those
    of each part that is over, and `rows` measure the model.
    """

    def __init__(
        self, elapsed: float = 0.0, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds: dict[str, float] = {}
        self.limit = math.inf
        self._now = now
        self._began = self._part_began = now() - elapsed
        self._is_first = not _has_trained
        self.rows = 0
        self._part: str | None = None
        self._skipped: set[str] = set()
        self._told: dict[str, float] = {}
        self._reports: list[tuple[float, Progress]] = []
        self._done = 0.0
        self._ended_at: float | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    @property
    def elapsed(self) -> float:
        """Seconds since the start, until the end."""
        return (self._ended_at or self._now()) - self._began

    @property
    def has_time_for_more(self) -> bool:
        """Whether half of the limit is left, enough to train another network."""
        return self.elapsed <= _SHARE_FOR_MORE * self.limit

    def seconds_to_judge(self, followed_by: str) -> float:
        """Returns the time for what may be left out, possibly negative."""
        return min(_SHARE_OF_REPORT * self.limit, self.seconds_before(followed_by))

    @property
    def seconds_to_report(self) -> float:
        """The time for the explanations of the report, possibly negative."""
        seconds = max(1.0, _SHARE_OF_REPORT * self.elapsed)
        return min(seconds, self.seconds_to_judge("model"))

    def begin(self, part: str) -> None:
        """Ends the present part and begins another one; parts between are skipped."""
        with self._lock:
            self._end_part()
            # The first one begins with the clock.
            self._part_began = self._now() if self.seconds else self._began
            self._part, self._reports = part, []

    def end(self) -> None:
        """Ends the last part, and the training."""
        global _has_trained
        with self._lock:
            self._end_part()
            self._part, self._ended_at = None, self._now()
            _has_trained = True

    def expect(self, part: str, seconds: float) -> None:
        """Sets the expected seconds of a part."""
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
            if self._reports and self._reports[-1][1].steps != progress.steps:
                self._reports = []
            self._reports = [*self._reports[:1], (self._now(), progress)]

    def seconds_of(self, *parts: str) -> float:
        """Returns the expected seconds of parts, apart from those that are skipped.

        A processor that was fast so far may become slower.
        """
        with self._lock:
            slowness = _RESERVE * max(self._slowness(), 1.0)
            asked = [name for name in parts if name not in self._skipped]
            return slowness * sum(map(self._expected, asked))

    def seconds_before(self, part: str) -> float:
        """Returns the seconds until a part must begin, possibly negative.

        It and all certain parts after it that are not over need their time.
        """
        later = list(PARTS)[list(PARTS).index(part) + 1 :]
        certain = [name for name in later if PARTS[name].certain]
        needed = [part, *(name for name in certain if name not in self.seconds)]
        return self.limit - self.elapsed - self.seconds_of(*needed)

    def left(self) -> TimeLeft:
        """Estimates the time that is left."""
        with self._lock:
            elapsed = self.elapsed
            if self._ended_at is not None:
                return TimeLeft(STAGES[-1], 1.0, 0.0, 0.0, elapsed)
            least, most = self._range()
            middle = 0.5 * (least + most)
            self._done = max(self._done, elapsed / max(elapsed + middle, 1e-9))
            self._done = min(self._done, 0.999)
            return TimeLeft(
                PARTS[self._part or "loading"].stage, self._done, least, most, elapsed
            )

    def _end_part(self) -> None:
        if self._part is not None:
            took = self._now() - self._part_began
            self.seconds[self._part] = self.seconds.get(self._part, 0.0) + took

    def _slowness(self) -> float:
        """Returns how many times the expected seconds the parts took."""
        took = dict(self.seconds)
        # The number of steps is not known before.
        timed = {name for name in took if not PARTS[name].of_steps}
        later, believed = timed - {"loading"}, _SECONDS_BELIEVED
        if sum(map(self._expected, later)) > believed:
            # Files that a disk reads for the first time say little about what follows.
            timed, believed = later, 0.0
        expected = believed + sum(map(self._expected, timed))
        found = (believed + sum(took[name] for name in timed)) / expected
        if self._part is None or PARTS[self._part].of_steps:
            return found
        # A part that is overdue says that the machine is slow, up to a point.
        of_part = self._expected(self._part)
        spent = min(self._now() - self._part_began, _MOST_OVERDUE * found * of_part)
        return max(found, (found * expected + spent) / (expected + of_part))

    def _expected(self, name: str) -> float:
        if name in self._told:
            return self._told[name]
        part = PARTS[name]
        seconds = part.seconds + 1e-3 * part.per_thousand * self.rows
        return seconds + part.first * self._is_first

    def _range(self) -> tuple[float, float]:
        """Returns least and most seconds that are left."""
        spread = 1.0 + _SPREAD + math.exp(-sum(self.seconds.values()))
        slowness, least, most = self._slowness(), 0.0, 0.0
        names = list(PARTS)
        if self._part is not None:
            names = names[names.index(self._part) + 1 :]
            least, most = self._range_of_part(self._part, slowness)
        later = {
            n: slowness * self._expected(n) for n in names if n not in self._skipped
        }
        certain = sum(seconds for n, seconds in later.items() if PARTS[n].certain)
        # The steps end in time for what follows them.
        until = max(self.limit - self.elapsed, 0.0)
        least = min((least + certain) / spread, until)
        most = min((most + sum(later.values())) * spread, until)
        return least, max(most, least + _LEAST_WIDTH)

    def _range_of_part(self, name: str, slowness: float) -> tuple[float, float]:
        """Returns least and most seconds that are left of the present part."""
        if PARTS[name].of_steps and self._reports:
            (_, first), (seen_at, last) = self._reports[0], self._reports[-1]
            if taken := last.step - first.step:
                pace = (last.seconds - first.seconds) / taken
                left = pace * (last.steps - last.step)
                left = max(left - (self._now() - seen_at), 0.0)
                return left, left
        spent = self._now() - self._part_began
        left = slowness * self._expected(name) - spent
        return max(left, _LEAST_LEFT * spent), max(left, _MOST_LEFT * spent)
