"""The familiarity of a row, as a percentile among rows like the training rows."""

import base64
import copy
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.array_library import numpy_of
from tfbbb.base.nested import leaves
from tfbbb.base.types import ArrayLike, Config, Structure, Tensor
from tfbbb.prediction.compiled import ROWS_AT_A_TIME, fast_call, in_parts, traced
from tfbbb.tables.values import MISSING_DATE

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
# Codes of texts: float32 represents them exactly.
_CODES = 1 << 24
_NO_TEXT = np.float64(0x9AE16A3B2F90404F % _CODES)
# In a standard deviation, by which equal numbers are recognised.
_STEPS = 1024.0
_MIX = np.int64(6364136223846793005)
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
        is_known = tf.where(self.is_text, values != _NO_TEXT, is_known)
        numbers = tf.where(self.is_text, values, numbers)
        missing = 1.0 - tf.cast(is_known, tf.float32)
        return tf.concat([tf.cast(numbers, tf.float32), missing], axis=1)

    def decode(self, numbers: Tensor) -> tf.Tensor:
        """Returns the values of encoded numbers, float64 [n, p]."""
        numbers = tf.cast(numbers, tf.float64)
        return self.centers + self.units * tf.sinh(numbers * self.scales)


class Known(NamedTuple):
    """What is known of the n rows that represent the training rows."""

    # As they are compared, float32 [n, 2 p].
    rows: Any
    # The sum of the squares of the numbers of each row, [n].
    squares: Any
    # The ordered values of each column between infinite ones, [p, n + 2].
    ascending: Any
    # The mean distance of each row to its nearest rows, [n].
    distances: Any
    # The pairs of values that they have, as numbers in order, int64 [1, q].
    pairs: Any
    # The scores of the rows, each left out of the others, in order, [3, n].
    scores: Any
    # For each number r from 0 to n, how many rows have a smaller rank, int32 [n + 1].
    before: Any
    # How many rows have the rank r, by the score that has it, int32 [3, n + 1].
    at: Any


@keras.saving.register_keras_serializable(package="tfbbb")
class Familiarity:
    """The familiarity of a row: its percentile among rows like the training rows.

    It is a conformal p-value (Bates et al. 2023): of new rows that are like the
    training rows, a share of about `a` has a familiarity of `a` or less, whatever the
    table. It compares the score of a row with those of the n training rows, each of
    them left out of the others:

    ```
    familiarity(x) = (1 + #{i: rank(x_i) <= rank(x)}) / (n + 1)
    rank(x) = min(#{gap >= gap(x)}, #{new >= new(x)}, #{distance >= distance(x)})
    ```

    where # counts other rows, and of a training row x among them. `gap` is the largest
    distance of a number to the nearest training value of its column. `new` says whether
    a category, or a pair of values of columns with few of them, is new. `distance` is
    the mean distance to the 5 nearest training rows, divided by the mean of their own
    (the local outlier factor of Breunig et al. 2000, of one step). Numbers and dates
    are compared as `asinh((x - median) / interquartile range)`, and whether they are
    missing; infinite numbers are missing, too.

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
        num_rows: Number n of rows that represent the training rows.
        places: The indices of these rows among those that it was fitted to, [n]; None
            after it was saved.
        num_training_rows: Number of rows that it was fitted to; None after it was
            saved.
    """

    places: np.ndarray | None = None
    num_training_rows: int | None = None

    def __init__(self, encoding: Encoding, representatives: np.ndarray) -> None:
        self.encoding = encoding
        is_text = encoding.is_text
        self.num_rows, self._width = len(representatives), len(is_text)
        self._is_code = np.append(is_text, np.ones(self._width, bool))
        self._weights = _weights(representatives, self._is_code)
        # That a text is missing is a category of its own.
        self._weights[self._width :][is_text] = 0.0
        # Of the columns whose squares are sums of products.
        self._factors = self._weights.copy()
        self._factors[: self._width][is_text] = 0.0
        self._pairs = _telling_pairs(representatives, self._is_code)
        self._known = self._compare_with_each_other(representatives)

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
        columns = _columns(x)
        num_rows = len(next(iter(columns.values())))
        places = _some_places(num_rows, MOST_REPRESENTATIVES, seed)
        columns = {name: column[places] for name, column in columns.items()}
        names = None if 0 in columns else tuple(map(str, columns))
        values, is_text = _values(columns)
        width = len(is_text)
        if num_rows < LEAST_ROWS or width > MOST_COLUMNS:
            raise ValueError(
                f"Familiarity needs at least {LEAST_ROWS} rows and at most "
                f"{MOST_COLUMNS} columns. Received: {num_rows} rows, {width} columns"
            )
        chosen = _some_places(len(values), _MOST_BYTES // (8 * (1 + width)), seed)
        values = values[chosen]
        scaling = [
            (0.0, 1.0, 1.0) if text else _scale(column)
            for column, text in zip(values.T, is_text, strict=True)
        ]
        encoding = Encoding(names, is_text, *np.transpose(scaling))
        familiarity = cls(encoding, encoding.encode(values).numpy())
        familiarity.places = places[chosen]
        familiarity.num_training_rows = num_rows
        return familiarity

    @property
    def representatives(self) -> np.ndarray:
        """The encoded rows that represent the training rows, float32 [n, 2 p]."""
        return np.asarray(self._known.rows)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the compared columns; None if they have none."""
        return self.encoding.columns

    def is_of_same_rows(self, other: "Familiarity") -> bool:
        """Whether another familiarity has the same representatives."""
        return np.array_equal(self.representatives, other.representatives)

    def of_model(self, model: keras.Model) -> Self:
        """Returns a copy for a model, or raises ValueError if its inputs are others."""
        if self.columns is not None:
            known = model.input if isinstance(model.input, Mapping) else ()
            missing = [name for name in self.columns if name not in known]
            if missing:
                raise ValueError(
                    "The model must have the columns that the familiarity compares. "
                    f"Received: model={model.name!r} without {missing}"
                )
        elif isinstance(model.input, Mapping):
            raise ValueError(
                "The familiarity of a model of named columns must be fitted to a "
                f"dictionary of them. Received: model={model.name!r}"
            )
        else:
            shapes = [tuple(x.shape[1:]) for x in model.inputs]
            width = sum(math.prod(x) for x in shapes if None not in x)
            if width != self._width and not any(None in x for x in shapes):
                raise ValueError(
                    "The familiarity must be fitted to the inputs of the model. "
                    f"Received: {self._width} columns for {width} inputs"
                )
        return copy.copy(self)

    def __call__(self, inputs: Structure) -> tf.Tensor:
        """Returns the familiarity of rows, float32 [n], from 0 to 1."""
        if tf.executing_eagerly():
            return in_parts(self._of_values_compiled, self.values(inputs))
        return self._of_values(self.values(inputs))

    def values(self, inputs: Structure) -> Tensor:
        """Returns the compared values of rows, float64 [n, p]."""
        values, is_text = _values(_columns(inputs, self.columns))
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
        rows, known, width = self.encode(inputs), self._known, self._width
        below, above = self._around(rows)
        gaps = self._gaps(rows)
        limit = tf.gather(known.scores[0], int(0.99 * self.num_rows))
        nearest = tf.gather(known.rows, self.nearest(rows)[:, 0])
        farthest = tf.argmax(self._squares_apart(rows, nearest), axis=1)
        new = self._new_pairs(rows)
        # Of new pairs, those of one column come first.
        pair = tf.gather(self._pairs, tf.argmax(tf.cast(new, tf.int32), axis=1))
        is_new = tf.reduce_any(new, axis=1, keepdims=True)
        return {
            "is_apart": (gaps > 0.0) & (gaps >= limit),
            "below": self.encoding.decode(below),
            "above": self.encoding.decode(above),
            "pair": tf.where(is_new, pair % width, np.int64(-1)),
            "nearest": self.encoding.decode(nearest[:, :width]),
            "farthest": farthest % width,
        }

    def get_config(self) -> Config:
        columns, is_text, *scaling = self.encoding
        return {
            "columns": columns and list(columns),
            "is_text": is_text.tolist(),
            "scaling": np.array(scaling).tolist(),
            "rows": base64.b64encode(self.representatives.tobytes()).decode(),
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

    def _compare_with_each_other(self, rows: np.ndarray) -> Known:
        """Returns the representatives and their scores without themselves."""
        numbers = rows[:, : self._width]
        ends = np.full((self._width, 1), np.inf, np.float32)
        pairs = self._pair_numbers(rows).numpy()
        of_pairs, counts = np.unique(pairs, return_counts=True)
        empty = np.zeros(len(rows), np.float32)
        known = self._known = Known(
            rows=rows,
            squares=np.square(rows) @ self._factors,
            ascending=np.hstack([-ends, np.sort(numbers.T, axis=1), ends]),
            distances=empty,
            pairs=of_pairs[np.newaxis],
            scores=empty,
            before=empty,
            at=empty,
        )
        distances, spacings = self._distances_within(rows)
        scores = np.stack(
            [
                np.where(self.encoding.is_text, 0.0, _gaps_between(numbers)).max(1),
                (counts[np.searchsorted(of_pairs, pairs)] == 1).any(axis=1),
                distances / np.maximum(spacings, _LEAST_SPACING),
            ]
        ).astype(np.float32)
        known = self._known = known._replace(
            distances=distances, scores=np.sort(scores, axis=1)
        )
        # A row is not one of the others.
        ranks = self._ranks(scores).numpy() - 1
        at = np.zeros((len(ranks), len(rows) + 1), np.int32)
        np.add.at(at, (ranks.argmin(axis=0), ranks.min(axis=0)), 1)
        before = np.cumsum(at.sum(axis=0)) - at.sum(axis=0)
        known = known._replace(before=before.astype(np.int32), at=at)
        # Graphs that are saved share constants, but not arrays.
        return Known(*map(tf.constant, known))

    def _distances_within(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns mean distances of representatives, and of their nearest without them.

        Both are [n]: the second compares each row with others that do not know it, as
        they do not know a new row.
        """
        found = []
        for first in range(0, len(rows), ROWS_AT_A_TIME):
            part = tf.constant(rows[first : first + ROWS_AT_A_TIME])
            near = self.nearest(part, _NEIGHBOURS + 1, np.arange(first, len(rows)))
            found.append((self._distances(part, near), near))
        distances, places = map(np.concatenate, zip(*found, strict=True))
        nearest = places[:, :_NEIGHBOURS]
        of_nearest, knows = distances[nearest], places[nearest]
        is_own = knows == np.arange(len(rows))[:, np.newaxis, np.newaxis]
        # Where the row is not among them, the last of the six is left out.
        is_own[..., -1] = ~is_own[..., :-1].any(axis=-1)
        without = (of_nearest * ~is_own).sum(axis=-1) / _NEIGHBOURS
        return distances[:, :_NEIGHBOURS].mean(axis=1), without.mean(axis=1)

    def _ranks(self, scores: Tensor) -> tf.Tensor:
        """Returns how many representatives have such scores or larger, int32 [3, n]."""
        below = tf.raw_ops.LowerBound(sorted_inputs=self._known.scores, values=scores)
        return self.num_rows - below

    @functools.cached_property
    def _of_values_compiled(self) -> Callable[[Tensor], tf.Tensor]:
        spec = tf.TensorSpec([None, self._width], tf.float64)
        return fast_call(traced(self._of_values, spec))

    def _of_values(self, values: Tensor) -> tf.Tensor:
        rows = self.encoding.encode(values)
        return self.of_scores(self.scores(rows, self.nearest(rows)))

    def scores(
        self, rows: Tensor, places: Tensor, missing: Tensor | None = None
    ) -> tf.Tensor:
        """Returns gap, new and distance of encoded rows, float32 [3, n].

        `places` are of 5 nearest rows or more; `missing` has 1 where a cell does not
        count, [n, p].
        """
        new, places = self._new_pairs(rows), places[:, :_NEIGHBOURS]
        counts = None
        if missing is not None:
            counts = 1.0 - tf.concat([missing, missing], axis=1)
            of_pairs = tf.gather(counts, self._pairs, axis=1)
            new &= tf.reduce_min(of_pairs, axis=2) > 0.0
        spacings = tf.reduce_mean(tf.gather(self._known.distances, places), axis=1)
        means = tf.reduce_mean(self._distances(rows, places, counts), axis=1)
        return tf.stack(
            [
                tf.reduce_max(self._gaps(rows), axis=1),
                tf.cast(tf.reduce_any(new, axis=1), tf.float32),
                means / tf.maximum(spacings, _LEAST_SPACING),
            ]
        )

    def of_scores(self, scores: Tensor) -> tf.Tensor:
        """Returns the familiarity of rows of scores [3, n], float32 [n]."""
        known, ranks = self._known, self._ranks(scores)
        rank = tf.reduce_min(ranks, axis=0)
        # Beside the row, another of the same rank has the next one, unless another
        # score gave it this rank.
        same = tf.where(ranks > rank, tf.gather(known.at, rank, axis=1), 0)
        count = 1 + tf.gather(known.before, rank) + tf.reduce_sum(same, axis=0)
        return tf.cast(count, tf.float32) / (1 + self.num_rows)

    def exceedance(self, scores: Tensor) -> tf.Tensor:
        """Returns how far rows of scores [3, n] are beyond training rows, float32 [n].

        It is the largest ratio of `gap` and `distance` to what 99 % of the training
        rows do not exceed, but for equal numbers and rows to .05 and 1; and 2 for a
        category or pair that is new, where less than 1 % of the training rows have one.
        """
        gap, new, distance = tf.unstack(scores)
        most = self._known.scores[:, int(0.99 * self.num_rows)]
        ratios = [
            gap / tf.maximum(most[0], _LEAST_SPACING),
            tf.where((new > 0.0) & (most[1] == 0.0), 2.0, 0.0),
            distance / tf.maximum(most[2], 1.0),
        ]
        return tf.reduce_max(tf.stack(ratios), axis=0)

    def outside_ranges(self, rows: Tensor) -> tf.Tensor:
        """Returns how far numbers are outside their ranges, as a variance, [n, p].

        It is `r + r^2`, where r is how far the number lies outside the range of the
        training rows, in units of the range: the variance of a Brownian motion of
        unknown slope. It is 0 of texts and of numbers that do not vary.
        """
        ascending, decode = self._known.ascending, self.encoding.decode
        least, most = decode(ascending[:, 1]), decode(ascending[:, -2])
        values = decode(rows[:, : self._width])
        outside = tf.maximum(tf.maximum(least - values, values - most), 0.0)
        relative = tf.cast(tf.math.divide_no_nan(outside, most - least), tf.float32)
        relative = tf.where(self.encoding.is_text, np.float32(0.0), relative)
        return relative + tf.square(relative)

    def _around(self, rows: Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the encoded values below, and at or above numbers, [n, p] each."""
        ascending, numbers = self._known.ascending, rows[:, : self._width]
        above = tf.raw_ops.LowerBound(
            sorted_inputs=ascending, values=tf.transpose(numbers)
        )
        columns = np.arange(self._width, dtype=np.int32)
        above += (self.num_rows + 2) * columns[:, np.newaxis]
        values = tf.reshape(ascending, [-1])
        found = tf.gather(values, above - 1), tf.gather(values, above)
        return tf.transpose(found[0]), tf.transpose(found[1])

    def _gaps(self, rows: Tensor) -> tf.Tensor:
        """Returns the gap of each number, 0 of texts, [n, p]."""
        (below, above), numbers = self._around(rows), rows[:, : self._width]
        gaps = tf.minimum(numbers - below, above - numbers)
        return tf.where(self.encoding.is_text, np.float32(0.0), gaps)

    def _new_pairs(self, rows: Tensor) -> tf.Tensor:
        """Returns which pairs of values no representative has, [n, pairs]."""
        numbers = self._pair_numbers(rows)
        bounds = {
            "sorted_inputs": self._known.pairs,
            "values": tf.reshape(numbers, [1, -1]),
        }
        is_new = tf.raw_ops.LowerBound(**bounds) == tf.raw_ops.UpperBound(**bounds)
        return tf.reshape(is_new, tf.shape(numbers))

    def _pair_numbers(self, rows: Tensor) -> tf.Tensor:
        """Returns a number for each pair of values, int64 [n, pairs]."""
        codes = tf.cast(tf.round(rows * _STEPS), tf.int64)
        first = tf.gather(codes, self._pairs[:, 0], axis=1)
        second = tf.gather(codes, self._pairs[:, 1], axis=1)
        # Products that overflow tell pairs apart.
        which = np.arange(len(self._pairs), dtype=np.int64)
        return (which * _MIX + first) * _MIX + second

    def nearest(
        self, rows: Tensor, number: int = _NEIGHBOURS, own: np.ndarray | None = None
    ) -> tf.Tensor:
        """Returns the indices of the representatives nearest to encoded rows, [n, m].

        `own` has the index of the representative that each row is.
        """
        known, texts = self._known, np.flatnonzero(self.encoding.is_text)
        # |x - r|^2 less |x|^2.
        products = tf.matmul(2.0 * self._factors * rows, known.rows, transpose_b=True)
        squares = known.squares - products
        if len(texts):
            codes = tf.gather(rows, texts, axis=1)[:, tf.newaxis]
            differ = codes != tf.gather(known.rows, texts, axis=1)
            squares += tf.linalg.matvec(
                tf.cast(differ, tf.float32), self._weights[texts]
            )
        if own is not None:
            places = np.stack([np.arange(len(rows)), own[: len(rows)]], axis=1)
            infinite = np.full(len(rows), np.inf, np.float32)
            squares = tf.tensor_scatter_nd_update(squares, places, infinite)
        return tf.math.top_k(-squares, number).indices

    def _distances(
        self, rows: Tensor, places: Tensor, counts: Tensor | None = None
    ) -> tf.Tensor:
        """Returns the distances of rows to some representatives each, [n, number].

        Only the cells where `counts` is 1 count, [n, 2 p].
        """
        others = tf.gather(self._known.rows, places)
        apart = self._squares_apart(rows[:, tf.newaxis], others)
        if counts is not None:
            apart *= counts[:, tf.newaxis]
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


def _columns(x: Any, names: Sequence[str] | None = None) -> dict[str | int, ArrayLike]:
    """Returns rows as columns by name, or by number if they have no names.

    Texts without a value become empty, dates seconds since 1970.
    """
    columns: dict[str | int, Any]
    if hasattr(x, "columns") and hasattr(x, "__getitem__"):
        x = {str(name): x[name] for name in x.columns}
    if names is not None:
        if not isinstance(x, Mapping) or any(name not in x for name in names):
            given = sorted(x) if isinstance(x, Mapping) else type(x).__name__
            raise ValueError(
                f"Rows must be a dictionary with the columns {list(names)}. "
                f"Received: {given}"
            )
        columns = {name: x[name] for name in names}
    elif isinstance(x, Mapping):
        columns = dict(x)
    else:
        flat = leaves(x)
        # Rows may be lists of numbers.
        plain = isinstance(x, list | tuple) and flat and np.ndim(flat[0]) == 0
        columns = dict(enumerate([x] if plain else flat))
    if not columns:
        raise ValueError(f"Rows need at least one column. Received: {x!r}")
    if not tf.executing_eagerly():
        return columns
    columns = {name: _as_array(column) for name, column in columns.items()}
    first, *_ = columns
    for name, column in columns.items():
        if column.ndim == 0:
            of_column = "" if name == 0 else f" of column {name!r}"
            raise ValueError(f"Rows need an axis. Received: {column!r:.100}{of_column}")
        if len(column) != len(columns[first]):
            raise ValueError(
                "All columns must have the same number of rows. Received: "
                f"{len(columns[first])} rows of column {first!r}, {len(column)} of "
                f"{name!r}"
            )
    return columns


def _as_array(column: Any) -> np.ndarray:
    array = np.asarray(column)
    if array.dtype.kind == "M":
        return array.astype("datetime64[s]").astype(np.int64)
    if array.dtype.kind != "O":
        return array
    missing = np.array([value is None or value != value for value in array.flat])
    texts = np.array([isinstance(value, str | bytes) for value in array.flat])
    if texts.any() and (texts | missing).all():
        return np.where(missing.reshape(array.shape), "", array).astype(object)
    return np.where(missing.reshape(array.shape), np.nan, array).astype(np.float64)


def _values(columns: Mapping[Any, ArrayLike]) -> tuple[Tensor, np.ndarray]:
    """Returns columns as a matrix, float64 [n, p], and which of it are texts, [p].

    Missing numbers are NaN, and texts are codes.
    """
    parts, texts = [], []
    for column in columns.values():
        xp = numpy_of(column)
        is_text = tf.as_dtype(column.dtype) == tf.string
        given = tf.strings.to_hash_bucket_fast(column, _CODES) if is_text else column
        part = xp.asarray(given, np.float64)
        if column.dtype == np.int64:
            part = xp.where(column == MISSING_DATE, np.float64(np.nan), part)
        width = math.prod(part.shape[1:])
        parts.append(xp.reshape(part, [-1, width]))
        texts += [is_text] * width
    return numpy_of(*parts).concatenate(parts, axis=1), np.array(texts, bool)


def _described(is_text: np.ndarray) -> str:
    return f"{len(is_text)} columns, {is_text.sum()} of them texts"


def _scale(column: np.ndarray) -> tuple[float, float, float]:
    """Returns center, unit and scale of a column of numbers."""
    numbers = column[np.isfinite(column)]
    if not len(numbers):
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


def _gaps_between(rows: np.ndarray) -> np.ndarray:
    """Returns the distance of each value to the nearest other one, [n, p]."""
    order = np.argsort(rows, axis=0)
    steps = np.diff(np.take_along_axis(rows, order, axis=0), axis=0)
    ends = np.full((1, rows.shape[1]), np.inf, rows.dtype)
    steps = np.concatenate([ends, steps, ends])
    gaps = np.empty_like(rows)
    np.put_along_axis(gaps, order, np.minimum(steps[:-1], steps[1:]), axis=0)
    return gaps
