"""The familiarity of a row, as a percentile among rows like the training rows."""

import base64
import copy
import functools
import itertools
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, Self

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Config, Structure, Tensor
from tfbbb.prediction.compiled import (
    ROWS_AT_A_TIME,
    compiled_if_repeated,
    in_parts,
    traced,
)
from tfbbb.prediction.inputs import NO_TEXT, columns_of, matrix_of

# With fewer rows, no familiarity could be below .05.
LEAST_ROWS = 20
MOST_REPRESENTATIVES, MOST_COLUMNS = 2000, 1250
# Of the representatives, which take 8 bytes for each cell.
_MOST_BYTES = 1_000_000
_NEIGHBOURS = 5
# The smallest distance between rows, in standard deviations, that others are
# compared with: rows may be equal.
_LEAST_SPACING = 0.05
# The largest squared distance between two categories.
_MOST_APART = 20.0
# In a standard deviation, by which equal numbers are recognised.
_STEPS = 1024.0
_MIX = np.int64(6364136223846793005)
# What so many rows do not exceed is the unit of what others do.
_SHARE_WITHIN = 0.99
# Of rows that are the only one with their value or pair of values.
_MOST_ALONE = 0.01
# Of the columns that are paired with each other.
_MOST_VALUES, _MOST_PAIRED = 50, 20


class Encoding(NamedTuple):
    """Rows as numbers in units of standard deviations, and codes.

    A number or date x becomes `asinh((x - center) / unit) / scale`, with the median as
    center and the interquartile range as unit: gaps between values remain, and a few
    large values do not hide those of all others. A text becomes its hash, a missing
    number the median. As many columns follow that say which cells are missing.
    """

    columns: tuple[str, ...] | None
    is_text: np.ndarray
    centers: np.ndarray
    units: np.ndarray
    scales: np.ndarray

    def encode(self, values: Tensor) -> tf.Tensor:
        """Encodes values, float64 [n, p], as float32 [n, 2 p]."""
        numbers = tf.asinh((values - self.centers) / self.units) / self.scales
        is_known = tf.math.is_finite(values)
        numbers = tf.where(is_known, numbers, np.float64(0.0))
        is_known = tf.where(self.is_text, values != NO_TEXT, is_known)
        numbers = tf.where(self.is_text, values, numbers)
        missing = 1.0 - tf.cast(is_known, tf.float32)
        return tf.concat([tf.cast(numbers, tf.float32), missing], axis=1)

    def decode(self, numbers: Tensor) -> tf.Tensor:
        """Returns the values of encoded numbers, float64 [n, p]."""
        numbers = tf.cast(numbers, tf.float64)
        return self.centers + self.units * tf.sinh(numbers * self.scales)


@keras.saving.register_keras_serializable(package="tfbbb")
class Familiarity:
    """The familiarity of a row: its percentile among rows like the training rows.

    It is a conformal p-value (Bates et al. 2023): of new rows that are like the
    training rows, a share of about `a` has a familiarity of `a` or less, whatever the
    table. It compares the score of a row with those of the n training rows, each of
    them left out of the others:

    ```
    familiarity(x) = (1 + #{i: score(x_i) >= score(x)}) / (n + 1)
    score(x) = e / (1 + e) - min(#{gap >= gap(x)}, #{new >= new(x)}, #{dist >= dist(x)})
    e = exceedance(x) = max(gap(x) / g, 2 new(x), dist(x) / d)
    ```

    where # counts other training rows; e decides between equal counts. `gap` is the
    largest distance of a number to the nearest training value of its column. `new` is 1
    if a category, or a pair of values of columns with few of them, is new, else 0.
    `dist` is the mean distance to the 5 nearest training rows, divided by the mean of
    their own (the local outlier factor of Breunig et al. 2000, of one step). The
    exceedance has these in units of what 99 % of the training rows do not exceed, but
    for equal numbers and rows of .05 and 1; `new` counts in it where less than 1 % of
    the training rows have one. Numbers and dates are compared as
    `asinh((x - median) / interquartile range)`, and whether they are missing; infinite
    numbers are missing, too.

    Training rows themselves are more familiar than new ones, and training rows that
    repeat others make new ones look unlike. At most 2000 rows, drawn at random,
    represent the training rows, fewer if there are more than 60 columns.

    `Familiarity.fit` makes one. `model.familiarity = ...` gives it to a model, whose
    predictions then have `familiarity`; it is saved and exported with the model.

    Example:

    >>> import numpy as np
    >>> import tfbbb
    >>> x = np.random.default_rng(0).normal(size=(500, 3))
    >>> familiarity = tfbbb.Familiarity.fit(x)
    >>> familiarity([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]]).numpy().round(2)
    array([0.72, 0.  ], dtype=float32)

    Args:
        encoding: How rows are compared.
        representatives: The encoded rows that represent the training rows, [n, 2 p].

    Attributes:
        rows: The encoded rows that represent the training rows, float32 [n, 2 p].
        num_rows: Number n of rows that represent the training rows.
        places: The indices of these rows among those that it was fitted to, [n]; None
            after it was saved.
        num_training_rows: Number of rows that it was fitted to; None after it was
            saved.
    """

    places: np.ndarray | None = None
    num_training_rows: int | None = None

    def __init__(self, encoding: Encoding, representatives: np.ndarray) -> None:
        rows, is_text = representatives, encoding.is_text
        self.encoding = encoding
        self.num_rows, self._width = len(rows), len(is_text)
        self._is_code = np.append(is_text, np.ones(self._width, bool))
        self._weights = _weights(rows, self._is_code)
        # That a text is missing is a category of its own.
        self._weights[self._width :][is_text] = 0.0
        # Of the columns whose squares are sums of products.
        self._factors = self._weights.copy()
        self._factors[: self._width][is_text] = 0.0
        self._pairs = _telling_pairs(rows, self._is_code)
        # Graphs that are saved share constants, but not arrays.
        self.rows = tf.constant(rows)
        self._squares = tf.constant(np.square(rows) @ self._factors)
        # The ordered values of each column between infinite ones, [p, n + 2].
        ends = np.full((self._width, 1), np.inf, np.float32)
        numbers = np.sort(rows[:, : self._width].T, axis=1)
        self._ascending = tf.constant(np.hstack([-ends, numbers, ends]))
        of_pairs = np.sort(self._pair_numbers(rows).numpy().ravel())
        self._known_pairs = tf.constant(of_pairs[np.newaxis])
        # Of each row itself, its nearest others, and one more.
        places = [self.nearest(x, _NEIGHBOURS + 2) for x in _blocks(rows)]
        blocks = list(zip(_blocks(rows), places, strict=True))
        near = [self._distances(*block)[:, 1:] for block in blocks]
        self._near = tf.concat(near, axis=0)
        parts = np.concatenate([self._parts(*x, own=1) for x in blocks], axis=1)
        self._sorted_parts = tf.constant(np.sort(parts, axis=1))
        most = self._sorted_parts[:, int(_SHARE_WITHIN * len(rows))].numpy()
        self._units = np.maximum(most, [_LEAST_SPACING, 0.0, 1.0]).astype(np.float32)
        self._units[1] = np.inf if most[1] else 0.5
        scores = self._scores(parts, self._exceedance(parts), own=1)
        self._sorted_scores = tf.constant(np.sort(scores)[np.newaxis])

    @classmethod
    def fit(cls, x: ArrayLike, *, seed: int = 0) -> Self:
        """Fits the familiarity to training rows.

        Args:
            x: Inputs of the training rows: an array [n, ...], or a dictionary or data
                frame of columns [n] of numbers (NaN is missing), texts (`""` or None is
                missing) or dates (in a dictionary of tensors seconds since 1970).
            seed: Seed of the choice of the rows that represent the others.

        Raises:
            ValueError: There are fewer than 20 rows or more than 1250 columns, or
                columns have other numbers of rows.
        """
        columns = columns_of(x)
        num_rows = len(next(iter(columns.values())))
        places = _some_places(num_rows, MOST_REPRESENTATIVES, seed)
        columns = {name: column[places] for name, column in columns.items()}
        names = None if 0 in columns else tuple(map(str, columns))
        values, is_text = matrix_of(columns)
        width = len(is_text)
        if num_rows < LEAST_ROWS or width > MOST_COLUMNS:
            raise ValueError(
                f"Familiarity needs at least {LEAST_ROWS} rows and at most "
                f"{MOST_COLUMNS} columns. Received: {num_rows} rows, {width} columns"
            )
        chosen = _some_places(len(values), _MOST_BYTES // (8 * (1 + width)), seed)
        values = values[chosen]
        scaling = [_scale(*column) for column in zip(values.T, is_text, strict=True)]
        encoding = Encoding(names, is_text, *np.transpose(scaling))
        familiarity = cls(encoding, encoding.encode(values).numpy())
        familiarity.places = places[chosen]
        familiarity.num_training_rows = num_rows
        return familiarity

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the compared columns; None if they have none."""
        return self.encoding.columns

    def is_of_same_rows(self, other: "Familiarity") -> bool:
        """Whether another familiarity has the same representatives."""
        return np.array_equal(self.rows, other.rows)

    def of_model(self, model: keras.Model) -> Self:
        """Returns a copy for a model, or raises ValueError if its inputs are others."""
        if isinstance(model.input, Mapping):
            missing = sorted(set(self.columns or ()) - set(model.input))
            if missing or self.columns is None:
                raise ValueError(
                    "The familiarity of a model of named columns must be fitted to a "
                    "dictionary of them. Received: "
                    f"model={model.name!r} of {sorted(model.input)}, columns="
                    f"{missing or None}"
                )
            return copy.copy(self)
        shapes = [tuple(x.shape[1:]) for x in model.inputs]
        is_known = not any(None in x for x in shapes)
        width = sum(map(math.prod, shapes)) if is_known else self._width
        if self.columns is not None or width != self._width:
            raise ValueError(
                "The familiarity must be fitted to the inputs of the model. Received: "
                f"{self._width} columns for {width} inputs, columns={self.columns}"
            )
        return copy.copy(self)

    def __call__(self, inputs: Structure) -> tf.Tensor:
        """Returns the familiarity of rows, float32 [n], from 0 to 1."""
        if tf.executing_eagerly():
            return in_parts(self._of_values_compiled, self.values(inputs))
        return self._of_values(self.values(inputs))

    def values(self, inputs: Structure) -> Tensor:
        """Returns the compared values of rows, float64 [n, p]."""
        values, is_text = matrix_of(columns_of(inputs, self.columns))
        if not np.array_equal(is_text, self.encoding.is_text):
            raise ValueError(
                "Rows must have the columns of the training rows: "
                f"{_described(self.encoding.is_text)}. Received: {_described(is_text)}"
            )
        return values

    def encode(self, inputs: Structure) -> tf.Tensor:
        """Returns rows as they are compared, float32 [n, 2 p]."""
        return self.encoding.encode(self.values(inputs))

    def differences(self, inputs: Structure) -> dict[str, tf.Tensor]:
        """Returns how rows differ from the training rows.

        `is_apart`, whether a number is in a gap of its column that 1 % of the rows
        have, [n, p]; `below` and `above`, the training values around it, infinite where
        there is none, [n, p]; `pair`, the columns of a new pair of values, a new
        category with itself, [n, 2], -1 for none; `nearest`, the values of the nearest
        row, [n, p]; `farthest`, the column that differs most from it, [n].
        """
        rows, width, decode = self.encode(inputs), self._width, self.encoding.decode
        gaps, below, above = self._gaps(rows)
        nearest = tf.gather(self.rows, self.nearest(rows, 1)[:, 0])
        farthest = tf.argmax(self._squares_apart(rows, nearest), axis=1)
        new = self._new_pairs(rows)
        # Of new pairs, those of one column come first.
        pair = tf.gather(self._pairs, tf.argmax(tf.cast(new, tf.int32), axis=1))
        is_new = tf.reduce_any(new, axis=1, keepdims=True)
        return {
            "is_apart": gaps >= self._units[0],
            "below": decode(below),
            "above": decode(above),
            "pair": tf.where(is_new, pair % width, np.int64(-1)),
            "nearest": decode(nearest[:, :width]),
            "farthest": farthest % width,
        }

    def get_config(self) -> Config:
        columns, is_text, *scaling = self.encoding
        return {
            "columns": columns and list(columns),
            "is_text": is_text.tolist(),
            "scaling": np.array(scaling).tolist(),
            "rows": base64.b64encode(self.rows.numpy().tobytes()).decode(),
        }

    @classmethod
    def from_config(cls, config: Config) -> Self:
        if set(config) != {"columns", "is_text", "scaling", "rows"}:
            raise ValueError(
                "Another version of tfbbb saved this familiarity. Load the model with "
                "that version, set `model.familiarity = None`, and save it again. "
                f"Received: {sorted(config)}"
            )
        names, is_text = config["columns"], np.array(config["is_text"], bool)
        names = None if names is None else tuple(names)
        rows = np.frombuffer(base64.b64decode(config["rows"]), np.float32)
        encoding = Encoding(names, is_text, *np.array(config["scaling"]))
        return cls(encoding, rows.reshape(-1, 2 * len(is_text)))

    def __repr__(self) -> str:
        return f"<Familiarity num_rows={self.num_rows}, columns={self._width}>"

    @functools.cached_property
    def _of_values_compiled(self) -> Callable[[Tensor], tf.Tensor]:
        spec = tf.TensorSpec([None, self._width], tf.float64)
        return compiled_if_repeated(
            self._of_values,
            lambda: traced(self._of_values, spec),
            self.numbers_compared,
        )

    def numbers_compared(self, values: Tensor) -> float:
        """Returns how many distances the comparison of rows computes."""
        return len(values) * float(self.num_rows)

    def _of_values(self, values: Tensor) -> tf.Tensor:
        rows = self.encoding.encode(values)
        return self.compare(rows, self.nearest(rows, _NEIGHBOURS))[0]

    def compare(self, rows: Tensor, places: Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns familiarity and exceedance of encoded rows, float32 [n] each.

        `places` are those of the 5 nearest representatives or more: see `nearest`.
        """
        parts = self._parts(rows, places)
        exceedance = self._exceedance(parts)
        scores = self._scores(parts, exceedance)[tf.newaxis]
        below, _ = _places_among(self._sorted_scores, scores)
        num_rows = self.num_rows + 1
        return tf.cast(num_rows - below[0], tf.float32) / num_rows, exceedance

    def _exceedance(self, parts: Tensor) -> tf.Tensor:
        """Returns how far rows are beyond the training rows, [n]."""
        return tf.reduce_max(parts / self._units[:, np.newaxis], axis=0)

    def _scores(self, parts: Tensor, exceedance: Tensor, own: int = 0) -> tf.Tensor:
        below, _ = _places_among(self._sorted_parts, parts)
        count = tf.reduce_min(self.num_rows - own - below, axis=0)
        return exceedance / (1.0 + exceedance) - tf.cast(count, tf.float32)

    def _parts(self, rows: Tensor, places: Tensor, own: int = 0) -> tf.Tensor:
        """Returns gap, new and distance of encoded rows, float32 [3, n].

        `own` is 1 for representatives, which are compared with the others: the nearest
        of a representative is itself.
        """
        gaps, _, _ = self._gaps(rows, own)
        new = tf.reduce_any(self._new_pairs(rows, own), axis=1)
        places = places[:, own : own + _NEIGHBOURS]
        distances, near = self._distances(rows, places), tf.gather(self._near, places)
        spare = near[..., -1]
        if own:
            # The neighbours of a representative do not know it, as those of new rows.
            spare = tf.where(distances <= near[..., -2], distances, spare)
        spacings = tf.reduce_sum(near, axis=2) - spare
        spacing = tf.reduce_mean(spacings, axis=1) / _NEIGHBOURS
        relative = tf.reduce_mean(distances, axis=1) / tf.maximum(
            spacing, _LEAST_SPACING
        )
        return tf.stack(
            [tf.reduce_max(gaps, axis=1), tf.cast(new, tf.float32), relative]
        )

    def outside_ranges(self, rows: Tensor) -> tf.Tensor:
        """Returns how far numbers are outside their ranges, as a variance, [n, p].

        It is `r + r^2`, where r is how far the number lies outside the range of the
        training rows, in units of the range: the variance of a Brownian motion of
        unknown slope. It is 0 of texts and of numbers that do not vary.
        """
        ascending, decode = self._ascending, self.encoding.decode
        least, most = decode(ascending[:, 1]), decode(ascending[:, -2])
        values = decode(rows[:, : self._width])
        outside = tf.maximum(tf.maximum(least - values, values - most), 0.0)
        relative = tf.cast(tf.math.divide_no_nan(outside, most - least), tf.float32)
        relative = tf.where(self.encoding.is_text, np.float32(0.0), relative)
        return relative + tf.square(relative)

    def _gaps(
        self, rows: Tensor, own: int = 0
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the gap of each number, 0 of texts, and its ends, [n, p] each."""
        numbers = rows[:, : self._width]
        first, last = _places_among(self._ascending, tf.transpose(numbers))
        values = tf.reshape(self._ascending, [-1])
        offsets = (self.num_rows + 2) * np.arange(self._width, dtype=np.int32)
        below = tf.transpose(tf.gather(values, first - 1 + offsets[:, np.newaxis]))
        above = tf.transpose(tf.gather(values, last + offsets[:, np.newaxis]))
        is_known = self.encoding.is_text | tf.transpose(last - first > own)
        gaps = tf.minimum(numbers - below, above - numbers)
        return tf.where(is_known, np.float32(0.0), gaps), below, above

    def _new_pairs(self, rows: Tensor, own: int = 0) -> tf.Tensor:
        """Returns which pairs of values no representative has, [n, pairs]."""
        numbers = self._pair_numbers(rows)
        values = tf.reshape(numbers, [1, -1])
        first, last = _places_among(self._known_pairs, values)
        return tf.reshape(last - first <= own, tf.shape(numbers))

    def _pair_numbers(self, rows: Tensor) -> tf.Tensor:
        """Returns a number for each pair of values, int64 [n, pairs]."""
        codes = tf.cast(tf.round(rows * _STEPS), tf.int64)
        first = tf.gather(codes, self._pairs[:, 0], axis=1)
        second = tf.gather(codes, self._pairs[:, 1], axis=1)
        # Products that overflow tell pairs apart.
        which = np.arange(len(self._pairs), dtype=np.int64)
        return (which * _MIX + first) * _MIX + second

    def nearest(self, rows: Tensor, number: int) -> tf.Tensor:
        """Returns the indices of the representatives nearest to encoded rows, [n, m].

        Their order is that of the distances.
        """
        # |x - r|^2 less |x|^2.
        products = tf.matmul(2.0 * self._factors * rows, self.rows, transpose_b=True)
        squares = self._squares - products
        for text in np.flatnonzero(self.encoding.is_text).tolist():
            differ = tf.not_equal(rows[:, text, tf.newaxis], self.rows[:, text])
            squares += self._weights[text] * tf.cast(differ, tf.float32)
        return tf.math.top_k(-squares, number).indices

    def _distances(self, rows: Tensor, places: Tensor) -> tf.Tensor:
        """Returns the distances of rows to some representatives each, [n, number]."""
        others = tf.gather(self.rows, places)
        apart = self._squares_apart(rows[:, tf.newaxis], others)
        return tf.sqrt(tf.reduce_sum(apart, axis=-1))

    def _squares_apart(self, rows: Tensor, others: Tensor) -> tf.Tensor:
        """Returns the squared distance of rows in each column, [..., 2 p]."""
        squares = tf.square(rows - others)
        differ = tf.cast(squares > 0.0, tf.float32)
        return tf.where(self._is_code, self._weights * differ, squares)


def _some_places(num_rows: int, most: int, seed: int) -> np.ndarray:
    """Returns the indices of at most so many rows, drawn at random."""
    if num_rows <= most:
        return np.arange(num_rows)
    return np.random.default_rng(seed).choice(num_rows, most, replace=False)


def _described(is_text: np.ndarray) -> str:
    return f"{len(is_text)} columns, {is_text.sum()} of them texts"


def _scale(column: np.ndarray, is_text: bool) -> tuple[float, float, float]:
    """Returns center, unit and scale of a column of numbers; 0, 1 and 1 of texts."""
    numbers = column[np.isfinite(column)]
    if is_text or not len(numbers):
        return 0.0, 1.0, 1.0
    # A number of the column, as missing ones stand for it.
    center = np.quantile(numbers, 0.5, method="lower")
    low, high = np.quantile(numbers, [0.25, 0.75])
    unit = (high - low) or numbers.std() or abs(center) or 1.0
    return center, unit, np.arcsinh((numbers - center) / unit).std() or 1.0


def _weights(rows: np.ndarray, is_code: np.ndarray) -> np.ndarray:
    """Returns the squared distance of two categories of each column, [2 p].

    Two rows at random have the squared distance 2 on average, as numbers do.
    """
    weights = np.ones(rows.shape[1], np.float32)
    for place in np.flatnonzero(is_code):
        counts = np.unique(rows[:, place], return_counts=True)[1]
        differ = 1.0 - np.sum(np.square(counts / len(rows)))
        weights[place] = min(2.0 / max(differ, 1e-6), _MOST_APART)
    return weights


def _telling_pairs(rows: np.ndarray, is_code: np.ndarray) -> np.ndarray:
    """Returns the columns in which a new pair of values says something, [pairs, 2].

    At most 1 % of the rows may be the only one with its pair of values. A column of
    codes is a pair with itself. Codes and numbers with up to 50 values are paired with
    each other, of the first 20 such columns.
    """
    most_alone = max(1, int(_MOST_ALONE * len(rows)))
    pairs: list[tuple[int, int]] = []
    codes: dict[int, np.ndarray] = {}
    for place, column in enumerate(rows.T):
        values, numbers, counts = np.unique(
            column, return_inverse=True, return_counts=True
        )
        if is_code[place] and (counts == 1).sum() <= most_alone:
            pairs.append((place, place))
        if 1 < len(values) <= _MOST_VALUES and len(codes) < _MOST_PAIRED:
            codes[place] = numbers
    for (first, one), (second, other) in itertools.combinations(codes.items(), 2):
        counts = np.bincount(one * _MOST_VALUES + other)
        if (counts == 1).sum() <= most_alone:
            pairs.append((first, second))
    return np.array(pairs, np.int64).reshape(-1, 2)


def _blocks(rows: np.ndarray) -> list[np.ndarray]:
    """Returns the rows in parts, whose comparison with all takes some MB."""
    return np.array_split(rows, -(-len(rows) // ROWS_AT_A_TIME))


def _places_among(known: Tensor, values: Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns where values are among sorted ones: from one place up to another."""
    bounds = {"sorted_inputs": known, "values": values}
    return tf.raw_ops.LowerBound(**bounds), tf.raw_ops.UpperBound(**bounds)
