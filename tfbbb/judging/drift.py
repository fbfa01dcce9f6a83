"""A sequential test of whether new rows still come like the rows before them."""

import base64
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from tfbbb.base.types import Config

# Bets on p-values: each row multiplies the capital of a bet by 1 + slope (p - 1/2).
SLOPES = np.array([-1.0, -0.5, 0.5, 1.0])
FALSE_ALARM_RATE = 0.05
# The share of the capital that is bet from the first row on. The rest is kept for
# changes that come later: after n rows, _WAIT / (n + _WAIT) of it is left.
_FIRST = 0.5
_WAIT = 100.0
_ROWS_AT_ONCE = 512
_LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class Bag:
    """Scores without their order, as counts of their values.

    Scores are rounded to half precision, so that a bag of any number of scores has at
    most 63 488 values. Ties are broken at random, so the p-values stay exact.
    """

    values: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float16))
    counts: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def size(self) -> int:
        """Number of scores."""
        return int(self.counts.sum())

    def add(self, scores: np.ndarray) -> "Bag":
        """Returns the bag with more scores, [n]."""
        values = np.concatenate([self.values, _rounded(scores)])
        counts = np.concatenate([self.counts, np.ones(len(scores), np.int64)])
        distinct, places = np.unique(values, return_inverse=True)
        merged = np.zeros(len(distinct), np.int64)
        np.add.at(merged, places, counts)
        return Bag(distinct, merged)

    def p_values(self, scores: np.ndarray, ties: np.ndarray) -> np.ndarray:
        """Computes the smoothed conformal p-value of each score, [n].

        `p = (#{s_j > s} + tie #{s_j = s}) / #{s_j}`, over the bag, the given scores
        before s, and s itself. Small p-values belong to large scores.
        """
        scores = _rounded(scores)
        below = np.concatenate([[0], np.cumsum(self.counts)])
        up_to = below[np.searchsorted(self.values, scores, side="right")]
        above = below[-1] - up_to
        equal = up_to - below[np.searchsorted(self.values, scores, side="left")]
        earlier = np.tri(len(scores), k=-1, dtype=bool)
        above = above + (earlier & (scores > scores[:, np.newaxis])).sum(axis=1)
        equal = equal + (earlier & (scores == scores[:, np.newaxis])).sum(axis=1)
        total = below[-1] + np.arange(1, len(scores) + 1)
        p_values: np.ndarray = (above + ties * (equal + 1)) / total
        return p_values


@dataclass(frozen=True)
class Martingale:
    """The capital of a mixture of bets against uniform p-values, which starts at 1.

    A bet of slope e turns the capital c into `c (1 + e (p - 1/2))`. While p-values are
    independent and uniform no mixture of bets gains on average, so the capital ever
    reaches c with probability 1 / c at most (Ville 1939). Half of the capital is bet at
    the first row, on four slopes; the rest goes into bets that start at later rows, so
    that a change after many rows is found too: after n rows, 100 / (n + 100) of it
    waits. This is a mixture over the time of the change, as of Shiryaev (1963), of the
    bets of Vovk, Nouretdinov and Gammerman (2003).

    Attributes:
        waiting: The capital that is not bet yet; [...] for several martingales.
        log_bets: Logarithms of the capital in each bet, [..., slopes].
        num_rows: Number of p-values so far.
    """

    waiting: np.ndarray
    log_bets: np.ndarray
    num_rows: int = 0

    @classmethod
    def start(cls, *shape: int) -> Self:
        """Returns martingales of the given shape before the first row."""
        bets = np.full((*shape, len(SLOPES)), np.log(_FIRST / len(SLOPES)))
        return cls(np.full(shape, 1.0 - _FIRST), bets)

    @property
    def log_value(self) -> np.ndarray:
        """Logarithm of the capital, [...]."""
        bets: np.ndarray = np.logaddexp.reduce(self.log_bets, axis=-1)
        return np.logaddexp(bets, np.log(self.waiting))

    def bet(self, p_values: np.ndarray) -> "Martingale":
        """Returns the martingales after one p-value each, [...]."""
        left = (self.num_rows + _WAIT) / (self.num_rows + 1 + _WAIT)
        added = np.log(self.waiting * (1.0 - left) / len(SLOPES))
        bets = np.logaddexp(self.log_bets, added[..., np.newaxis])
        gains = SLOPES * (np.asarray(p_values)[..., np.newaxis] - 0.5)
        return Martingale(
            self.waiting * left, bets + np.log1p(gains), self.num_rows + 1
        )


@dataclass(frozen=True)
class DriftTest:
    """A sequential test of whether rows are exchangeable with those before them.

    Each row has one or more scores. The conformal p-values of a score among the
    reference scores and all scores before it are independent and uniform as long as
    the rows are exchangeable, whatever their distribution (Vovk, Nouretdinov and
    Gammerman 2003), and a `Martingale` bets against that. Of m scores, each has an
    alarm when its martingale reaches 20 m, so that the probability that rows which do
    not drift ever raise an alarm is 5 % at most. Simulated over 3000 rows it is 4.2 %,
    as capital jumps over the threshold rather than reaching it.

    The random numbers that break ties are those of a generator at the place of the
    row, so the test is a function of the rows in their order, however they are split.

    Example:

    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> test = DriftTest.start(generator.normal(size=(200, 1)))
    >>> test = test.update(generator.normal(size=(500, 1)))
    >>> test.alarm_row is None
    True
    >>> test.update(generator.normal(loc=1.0, size=(100, 1))).alarm_row
    555
    """

    bags: tuple[Bag, ...]
    martingale: Martingale
    log_greatest: float = 0.0
    alarm_row: int | None = None
    seed: int = 0

    @classmethod
    def start(cls, reference: np.ndarray, seed: int = 0) -> Self:
        """Returns the test before the first row."""
        bags = tuple(Bag().add(scores) for scores in np.asarray(reference).T)
        return cls(bags, Martingale.start(len(bags)), seed=seed)

    @property
    def num_rows(self) -> int:
        """Number of rows, without reference rows."""
        return self.martingale.num_rows

    @property
    def log_value(self) -> float:
        """Logarithm of the greatest martingale, divided by the number of scores.

        An alarm is raised when it reaches the logarithm of 20.
        """
        return float(self.martingale.log_value.max() - np.log(len(self.bags)))

    def update(self, scores: np.ndarray) -> "DriftTest":
        """Returns the test after more rows, in their order."""
        scores = np.asarray(scores, np.float64)
        if scores.ndim != 2 or scores.shape[1] != len(self.bags):
            raise ValueError(
                f"`scores` must have the shape [n, {len(self.bags)}]. "
                f"Received: an array of shape {scores.shape}"
            )
        if np.isnan(scores).any():
            raise ValueError("`scores` must be numbers. Received: NaN")
        test = self
        for start in range(0, len(scores), _ROWS_AT_ONCE):
            test = test._update(scores[start : start + _ROWS_AT_ONCE])
        return test

    def _update(self, scores: np.ndarray) -> "DriftTest":
        ties = self._ties(len(scores))
        p_values = [
            bag.p_values(*columns)
            for bag, *columns in zip(self.bags, scores.T, ties.T, strict=True)
        ]
        martingale, greatest, alarm = self.martingale, self.log_greatest, self.alarm_row
        threshold = -np.log(FALSE_ALARM_RATE)
        for p in np.stack(p_values, axis=-1):
            martingale = martingale.bet(p)
            value = float(martingale.log_value.max() - np.log(len(self.bags)))
            greatest = max(greatest, value)
            if alarm is None and value >= threshold:
                alarm = martingale.num_rows
        bags = zip(self.bags, scores.T, strict=True)
        return replace(
            self,
            bags=tuple(bag.add(added) for bag, added in bags),
            martingale=martingale,
            log_greatest=greatest,
            alarm_row=alarm,
        )

    def _ties(self, num_rows: int) -> np.ndarray:
        width = len(self.bags)
        place = np.random.PCG64(self.seed).advance(self.num_rows * width)
        return np.random.Generator(place).random((num_rows, width))

    def to_dict(self) -> Config:
        """Returns the test as plain JSON values."""
        return {
            "bags": [[_text(bag.values), _text(bag.counts)] for bag in self.bags],
            "waiting": self.martingale.waiting.tolist(),
            "log_bets": self.martingale.log_bets.tolist(),
            "num_rows": self.num_rows,
            "log_greatest": self.log_greatest,
            "alarm_row": self.alarm_row,
            "seed": self.seed,
        }

    @classmethod
    def from_dict(cls, values: Config) -> Self:
        """Creates the test from the result of `to_dict`."""
        bags = tuple(
            Bag(_array(scores, np.float16), _array(counts, np.int64))
            for scores, counts in values["bags"]
        )
        martingale = Martingale(
            np.array(values["waiting"]),
            np.array(values["log_bets"]),
            values["num_rows"],
        )
        rest = (values[name] for name in ("log_greatest", "alarm_row", "seed"))
        return cls(bags, martingale, *rest)


def _rounded(scores: np.ndarray) -> np.ndarray:
    return np.clip(scores, -_LARGEST, _LARGEST).astype(np.float16)


def _text(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


def _array(text: str, dtype: type) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype)
