"""How the prediction changes with one column."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tfbbb.base.texts import shown_number
from tfbbb.base.types import Config
from tfbbb.judging.evaluation.input_encoding import as_numbers, is_date
from tfbbb.judging.explain.rows import Rows, predicted
from tfbbb.judging.types import Inputs, Model
from tfbbb.tables.row_warnings import show_date

_LEVEL = 0.9
_MOST_TEXTS = 12
# Between these quantiles of the rows.
_FIRST, _LAST = 0.02, 0.98


@dataclass(frozen=True)
class Effect:
    """The mean prediction as a function of one column.

    Attributes:
        name: Name of the column.
        values: Values of the column, g numbers in order, or texts, the commonest first.
        mean: Mean prediction at each value, [g]; for classes mean probabilities [g, c].
        lower: Lower ends of the 90 % epistemic band, of the shape of the mean.
        upper: Upper ends.
        between: Whether values between two `values` make sense.
        date: Whether the numbers are dates, in seconds since 1970.
    """

    name: str
    values: tuple[float, ...] | tuple[str, ...]
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    between: bool
    date: bool = False

    def show(self, value: float | str) -> str:
        """Writes one of the values for people."""
        if isinstance(value, str):
            return repr(value)
        return show_date(value) if self.date else shown_number(value, 5)

    def spelled(self, texts: Mapping[float, str]) -> "Effect":
        """Returns the effect with texts in place of numbers, if all have one."""
        if not set(self.values) <= texts.keys():
            return self
        values = tuple(texts[float(value)] for value in self.values)
        return replace(self, values=values, between=False)

    @property
    def range(self) -> float:
        """The greatest mean minus the least; of classes the largest such difference."""
        return float(np.max(np.ptp(self.mean, axis=0)))

    @property
    def kind(self) -> str:
        """What the values are: `"number"`, `"date"` or `"text"`."""
        if self.date:
            return "date"
        return "number" if self.between else "text"

    def to_dict(self) -> Config:
        """Returns the effect as plain JSON values; dates are texts."""
        return {
            "name": self.name,
            "kind": self.kind,
            "values": [self.show(v) if self.date else v for v in self.values],
            "mean": self.mean.tolist(),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "range": self.range,
        }


def effect(
    model: Model,
    inputs: Inputs,
    name: str,
    *,
    names: Sequence[str] | None = None,
    points: int = 20,
    max_rows: int = 200,
    draws: int = 50,
    num_samples: int | None = None,
    seed: int = 0,
) -> Effect:
    """Computes the partial dependence on a column (Friedman 2001), and its band.

    For a value v of the column, it is the mean over rows `mean_i E[y | x_i with v]`.
    The band holds 90 % of these means over draws of the weights, each of which all rows
    share: it is epistemic, and without the noise of single targets. A column of numbers
    has values at quantiles of at most `max_rows` rows.
    """
    rows = Rows.read(inputs, names)
    rows.check_column(name)
    column = rows.columns[name]
    between = column.dtype.kind in "fiub"
    values = _quantiles(column, points) if between else _commonest(column)
    if not len(values):
        raise ValueError(f"All values of the column {name!r} are missing.")
    rows = rows.sample(max_rows, np.random.default_rng(seed))
    number = len(rows)
    repeated = rows.take(np.tile(np.arange(number), len(values)))
    repeated = repeated.with_column(name, np.repeat(values, number))
    prediction = predicted(model, repeated, num_samples, seed)
    shape = (len(values), number)
    mean = np.asarray(prediction.mean, np.float64).reshape(*shape, -1).mean(axis=1)
    functions = prediction.joint_sample(draws, seed)
    drawn = functions.reshape(draws, *shape, -1).mean(axis=2, dtype=np.float64)
    lower, upper = np.quantile(drawn, [0.5 - _LEVEL / 2, 0.5 + _LEVEL / 2], axis=0)
    # The mean has more draws than the band.
    lower, upper = np.minimum(lower, mean), np.maximum(upper, mean)
    if not hasattr(prediction, "probabilities"):
        mean, lower, upper = mean[:, 0], lower[:, 0], upper[:, 0]
    return Effect(
        name, tuple(values.tolist()), mean, lower, upper, between, date=is_date(column)
    )


def _quantiles(values: np.ndarray, points: int) -> np.ndarray:
    known = values[np.isfinite(as_numbers(values))]
    if not len(known):
        return known
    distinct = np.unique(known)
    if len(distinct) <= points:
        return distinct
    # The nearest value, not one between two rows: whole numbers stay whole.
    found = np.quantile(known, np.linspace(_FIRST, _LAST, points), method="nearest")
    return np.unique(found)


def _commonest(values: np.ndarray) -> np.ndarray:
    counts = Counter(map(str, values.tolist()))
    return np.array([text for text, _ in counts.most_common(_MOST_TEXTS)], dtype=object)
