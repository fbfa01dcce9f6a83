"""The familiarity of a row, as a percentile among rows like the training rows."""

import base64
import copy
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Config, Structure, Tensor
from tfbbb.prediction.compiled import ROWS_AT_A_TIME, fast_call, in_parts, traced
from tfbbb.prediction.familiarity.pairs import is_alone, telling_pairs
from tfbbb.prediction.row_encoding import (
    MOST_COLUMNS,
    RowEncoding,
    as_inputs,
    row_values,
)

# With fewer rows, no familiarity could be below .05.
LEAST_ROWS = 20
MOST_REPRESENTATIVES = 2000
# Of the representatives and of the sorted values of their columns, in float32.
_MOST_BYTES = 1_000_000
_NEIGHBOURS = 5
# The smallest distance between rows, in standard deviations, that others are
# compared with: rows may be equal.
_LEAST_SPACING = 0.05
# The largest squared distance between two categories.
_MOST_APART = 20.0
# The largest difference of nearly equal numbers, in standard deviations.
_REACH = 0.25
# In a standard deviation, by which equal numbers are recognised.
_STEPS = 1024.0
_MIX = np.int64(6364136223846793005)


class Known(NamedTuple):
    """What is known of the n rows that represent the training rows.

    Attributes:
        rows: The rows as they are compared, float32 [n, p].
        ascending: The ordered values of each column between infinite ones, [p, n + 2].
        squares: The sum of the squares of the numbers of each row, [n].
        distances: The mean distance of each row to its nearest rows, [n].
        pairs: The pairs of values that they have, as numbers in order, int64 [1, q].
        scores: The scores of the rows, each left out of the others, in order, [3, n].
        before: For each number r from 0 to n, how many rows have a smaller rank than r,
            int32 [n + 1].
        at: How many rows have the rank r, by the score that has it, int32 [3, n + 1].
    """

    rows: Any
    ascending: Any
    squares: Any
    distances: Any
    pairs: Any
    scores: Any
    before: Any
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
    repeat others make new ones look unlike.

    At most 2000 rows, drawn at random, represent the training rows, fewer if there are
    more than 60 columns, so that they take some 1 MB.

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
        representatives: The encoded rows that represent the training rows, [n, p].
        layer: The name of the layer whose outputs are compared; None for the inputs.

    Attributes:
        layer: The name of the layer whose outputs are compared; None for the inputs.
        num_rows: Number n of rows that represent the training rows.
        places: The indices of these rows among those that it was fitted to, [n]; None
            after it was saved.
        num_training_rows: Number of rows that it was fitted to; None after it was
            saved.
    """

    places: np.ndarray | None = None
    num_training_rows: int | None = None

    def __init__(
        self, encoding: RowEncoding, representatives: np.ndarray, layer: str | None
    ) -> None:
        self.layer = layer
        self.encoding = encoding
        self.num_rows = len(representatives)
        self._features: keras.Model | None = None
        self._is_code = encoding.is_code
        self._weights = _weights(representatives, self._is_code)
        self._pairs = telling_pairs(representatives, self._is_code)
        self._known = self._compare_with_each_other(representatives.astype(np.float32))

    @classmethod
    def fit(
        cls,
        x: ArrayLike,
        *,
        model: keras.Model | None = None,
        layer: str | None = None,
        seed: int = 0,
    ) -> Self:
        """Fits the familiarity to training rows.

        Args:
            x: Inputs of the training rows: an array [n, ...], or a dictionary or data
                frame of columns [n] of numbers (NaN is missing), texts (`""` or None is
                missing) or dates (in a dictionary of tensors seconds since 1970).
            model: The model that has the layer.
            layer: The name of a layer of the model, whose outputs are compared in place
                of the inputs, as for images: usually the one before the last. It and
                the layers before it must draw nothing, and must not change afterwards.
            seed: Seed of the choice of the rows that represent the others.

        Raises:
            ValueError: There are fewer than 20 rows or more than 1250 columns, columns
                have other numbers of rows, or the layer has no features.
        """
        if (model is None) != (layer is None):
            raise ValueError(
                "The features of a layer need the model and the name of the layer. "
                f"Received: model={model!r}, layer={layer!r}"
            )
        features = None
        x = as_inputs(x)
        num_training_rows = len(tf.nest.flatten(x)[0])
        x, places = _some_rows(x, seed)
        if model is not None and layer is not None:
            features = _features(model, layer)
            x = features.predict(x, verbose=0)
        names = list(x) if isinstance(x, Mapping) else None
        values, is_text = row_values(x, names)
        values = np.asarray(values)
        chosen = _representatives(values, seed)
        encoding = RowEncoding.fit(values[chosen], is_text, names)
        familiarity = cls(encoding, encoding.encode(values[chosen]), layer)
        familiarity._features, familiarity.places = features, places[chosen]
        familiarity.num_training_rows = num_training_rows
        return familiarity

    @property
    def representatives(self) -> np.ndarray:
        """The encoded rows that represent the training rows, float32 [n, p]."""
        return np.asarray(self._known.rows)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the compared columns; None if they have none."""
        return self.encoding.columns

    def is_of_same_rows(self, other: "Familiarity") -> bool:
        """Whether another familiarity has the same representatives."""
        return np.array_equal(self.representatives, other.representatives)

    def of_model(self, model: keras.Model) -> Self:
        """Returns a copy that takes the inputs of a model.

        Raises:
            ValueError: The model lacks the layer or a column.
        """
        copied = copy.copy(self)
        if self.layer is not None:
            copied._features = _features(model, self.layer)
        elif self.columns is None:
            if isinstance(model.input, Mapping):
                raise ValueError(
                    "The familiarity of a model of named columns must be fitted to a "
                    f"dictionary of them. Received: model={model.name!r}"
                )
            widths = [
                math.prod(x.shape[1:]) for x in model.inputs if None not in x.shape[1:]
            ]
            own = len(self.encoding.is_text)
            if len(widths) == len(model.inputs) and sum(widths) != own:
                raise ValueError(
                    "The familiarity must be fitted to the inputs of the model. "
                    f"Received: {own} columns for {sum(widths)} inputs"
                )
        else:
            known = model.input if isinstance(model.input, Mapping) else ()
            missing = [name for name in self.columns if name not in known]
            if missing:
                raise ValueError(
                    "The model must have the columns that the familiarity compares. "
                    f"Received: model={model.name!r} without {missing}"
                )
        return copied

    def __call__(self, inputs: Structure) -> tf.Tensor:
        """Returns the familiarity of rows, float32 [n], from 0 to 1."""
        if tf.executing_eagerly():
            return in_parts(self._of_rows_compiled, self.encode(inputs))
        return self._of_rows(self.encode(inputs))

    def in_parts(self, inputs: Structure) -> tf.Tensor:
        """Returns the same within a graph, in bounded memory for any number of rows.

        The loop costs a row as much again as the familiarity does.
        """
        return by_parts(self._of_rows, self.encode(inputs))

    def encode(self, inputs: Structure, *, missing: bool = False) -> tf.Tensor:
        """Returns rows as they are compared, float32 [n, p].

        Args:
            inputs: Inputs of the rows.
            missing: Whether to append which cells are missing, of compared inputs.
        """
        if tf.executing_eagerly():
            inputs = as_inputs(inputs)
        if self.layer is None:
            return tf.convert_to_tensor(self.encoding(inputs, missing=missing))
        if self._features is None:
            raise ValueError(
                "The features of a layer need the model that has it: set "
                f"`model.familiarity`. Received: layer={self.layer!r}"
            )
        return self.encoding(self._features(inputs, training=False))

    def differences(self, inputs: Structure) -> dict[str, tf.Tensor]:
        """Returns how rows differ from the training rows.

        It takes n times as much memory as the representatives.

        Args:
            inputs: Inputs of n rows, as those that `fit` takes.

        Returns:
            `is_apart`, whether a number is in a gap of its column that 1 % of the rows
            have, [n, p]; `below` and `above`, the training values around it, infinite
            where there is none, [n, p]; `pair`, the columns of a new pair of values (a
            new category is a pair with itself), or else the column that differs most
            from the nearest row and the one with which it is rarest, [n, 2], -1 for
            none; `together` and `expected`, how many representatives have nearly both
            values, and how many would if the columns were independent, [n]; `nearest`,
            the values of the nearest row, [n, p].
        """
        rows, known = self.encode(inputs), self._known
        below, above = self._around(rows)
        gaps = self._gaps(rows, below, above)
        limit = tf.gather(known.scores[0], int(0.99 * self.num_rows))
        nearest = tf.gather(known.rows, self.nearest(rows)[1][:, 0])
        first = tf.argmax(self._squares_apart(rows, nearest), axis=1)
        reach = np.where(self._is_code, 0.0, _REACH).astype(np.float32)
        near = tf.abs(rows[:, tf.newaxis] - known.rows) <= reach
        near_first = tf.gather(near, first, axis=2, batch_dims=1)[..., tf.newaxis]
        counts = tf.reduce_sum(tf.cast(near, tf.float32), axis=1)
        both = tf.reduce_sum(tf.cast(near & near_first, tf.float32), axis=1)
        of_first = tf.gather(counts, first, axis=1, batch_dims=1)[:, tf.newaxis]
        expected = of_first * counts / self.num_rows
        itself = tf.one_hot(first, len(self._is_code), dtype=tf.float32)
        second = tf.argmax((1.0 - itself) * expected / (0.5 + both), axis=1)
        pair = tf.stack([first, second], axis=1)
        together = tf.gather(both, second, axis=1, batch_dims=1)
        expected = tf.gather(expected, second, axis=1, batch_dims=1)
        new = self._new_pairs(rows)
        is_new = tf.reduce_any(new, axis=1)
        # Of new pairs, those of one column come first.
        new_pair = tf.gather(self._pairs, tf.argmax(tf.cast(new, tf.int32), axis=1))
        pair = tf.where(is_new[:, tf.newaxis], new_pair, pair)
        width = len(self.encoding.is_text)
        return {
            "is_apart": ((gaps > 0.0) & (gaps >= limit))[:, :width],
            "below": self.encoding.decode(below),
            "above": self.encoding.decode(above),
            "pair": tf.gather(self.encoding.sources, pair),
            "together": tf.where(is_new, 0.0, together),
            "expected": tf.where(is_new, float(self.num_rows), expected),
            "nearest": self.encoding.decode(nearest),
        }

    def in_variables(self) -> Self:
        """Returns a copy for functions to be saved, which share its variables."""
        copied = copy.copy(self)
        copied._known = Known(*(tf.Variable(x, trainable=False) for x in self._known))
        return copied

    @property
    def variables(self) -> list[tf.Variable]:
        """The variables of a copy by `in_variables`; empty otherwise."""
        return [x for x in self._known if isinstance(x, tf.Variable)]

    def get_config(self) -> Config:
        encoding = self.encoding
        return {
            "layer": self.layer,
            "columns": encoding.columns and list(encoding.columns),
            "is_text": encoding.is_text.tolist(),
            "scaling": [
                getattr(encoding, name).tolist()
                for name in ("centers", "units", "scales")
            ],
            "incomplete": encoding.incomplete.tolist(),
            "rows": base64.b64encode(self._known.rows.tobytes()).decode(),
        }

    @classmethod
    def from_config(cls, config: Config) -> Self:
        names = config["columns"]
        centers, units, scales = np.array(config["scaling"])
        encoding = RowEncoding(
            None if names is None else tuple(names),
            np.array(config["is_text"], bool),
            centers,
            units,
            scales,
            np.array(config["incomplete"], np.int64),
        )
        rows = np.frombuffer(base64.b64decode(config["rows"]), np.float32)
        return cls(encoding, rows.reshape(-1, len(encoding.is_code)), config["layer"])

    def __repr__(self) -> str:
        width = len(self.encoding.is_text)
        return f"<Familiarity num_rows={self.num_rows}, columns={width}>"

    def _compare_with_each_other(self, rows: np.ndarray) -> Known:
        """Returns the representatives and their scores without themselves."""
        ends = np.full((rows.shape[1], 1), np.inf, np.float32)
        empty = np.zeros(len(rows), np.float32)
        numbers = np.where(self._is_code, 0.0, rows)
        pair_numbers = self._pair_numbers(rows).numpy()
        known = self._known = Known(
            rows=rows,
            ascending=np.hstack([-ends, np.sort(rows.T, axis=1), ends]),
            squares=np.square(numbers).sum(axis=1).astype(np.float32),
            distances=empty,
            pairs=np.unique(pair_numbers)[np.newaxis],
            scores=empty,
            before=empty,
            at=empty,
        )
        distances, spacings = self._distances_within(rows)
        gaps = np.where(self._is_code, 0.0, _gaps_between(rows))
        scores = np.stack(
            [
                gaps.max(axis=1),
                is_alone(pair_numbers).any(axis=1),
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
        return known._replace(before=before.astype(np.int32), at=at)

    def _distances_within(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns mean distances of representatives, and of their nearest without them.

        Both are [n]: the second compares each row with others that do not know it, as
        they do not know a new row.
        """
        found = []
        for first in range(0, len(rows), ROWS_AT_A_TIME):
            part = rows[first : first + ROWS_AT_A_TIME]
            own = np.arange(first, first + len(part))
            found.append(self.nearest(tf.constant(part), _NEIGHBOURS + 1, own))
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
    def _of_rows_compiled(self) -> Callable[[Tensor], tf.Tensor]:
        width = len(self._is_code)
        spec = tf.TensorSpec([None, width], tf.float32)
        return fast_call(traced(self._of_rows, spec))

    def _of_rows(self, rows: Tensor) -> tf.Tensor:
        """Returns the familiarity of encoded rows, float32 [n]."""
        return self.of_scores(self.scores(rows, *self.nearest(rows)))

    def scores(
        self,
        rows: Tensor,
        distances: Tensor,
        places: Tensor,
        ignored: Tensor | None = None,
    ) -> tf.Tensor:
        """Returns gap, new and distance of encoded rows, float32 [3, n].

        Args:
            rows: Encoded rows, [n, p].
            distances: From `nearest`, for 5 or more.
            places: The same.
            ignored: Which pairs of values do not count, [n, pairs]; None for none.
        """
        gaps = self._gaps(rows, *self._around(rows))
        new = self._new_pairs(rows)
        if ignored is not None:
            new &= ignored == 0.0
        is_new = tf.reduce_any(new, axis=1)
        of_nearest = tf.gather(self._known.distances, places[:, :_NEIGHBOURS])
        spacings = tf.maximum(tf.reduce_mean(of_nearest, axis=1), _LEAST_SPACING)
        means = tf.reduce_mean(distances[:, :_NEIGHBOURS], axis=1)
        return tf.stack(
            [
                tf.reduce_max(gaps, axis=1),
                tf.cast(is_new, tf.float32),
                means / spacings,
            ]
        )

    def scores_of_known(
        self, rows: Tensor, places: Tensor, missing: Tensor
    ) -> tf.Tensor:
        """Returns gap, new and distance by the cells that are not missing, [3, n].

        Args:
            rows: Encoded rows, [n, p'].
            places: From `nearest`, for 5 or more.
            missing: Which cells are missing, [n, p].
        """
        others = tf.reduce_max(missing, axis=1, keepdims=True)
        flags = tf.gather(missing, self.encoding.incomplete, axis=1)
        missing = tf.concat([missing, flags, others], axis=1)
        nearest = tf.gather(self._known.rows, places[:, :_NEIGHBOURS])
        apart = self._squares_apart(rows[:, tf.newaxis], nearest)
        apart *= 1.0 - missing[:, tf.newaxis]
        of_pairs = tf.reduce_max(tf.gather(missing, self._pairs, axis=1), axis=2)
        return self.scores(
            rows, tf.sqrt(tf.reduce_sum(apart, axis=-1)), places, of_pairs
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

    def ranges(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the least and the largest number of each column, float64 [p]."""
        ascending = self._known.ascending
        ends = self.encoding.decode(tf.stack([ascending[:, 1], ascending[:, -2]]))
        return ends[0], ends[1]

    def _around(self, rows: Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the values of representatives below, and at or above, [n, p] each.

        They are encoded, and infinite where there is none.
        """
        ascending = self._known.ascending
        above = tf.raw_ops.LowerBound(
            sorted_inputs=ascending, values=tf.transpose(rows)
        )
        width = self.num_rows + 2
        above += width * np.arange(len(self._is_code), dtype=np.int32)[:, np.newaxis]
        values = tf.reshape(ascending, [-1])
        found = tf.gather(values, above - 1), tf.gather(values, above)
        return tf.transpose(found[0]), tf.transpose(found[1])

    def _gaps(self, rows: Tensor, below: Tensor, above: Tensor) -> tf.Tensor:
        """Returns the gap of each number, 0 of codes, [n, p]."""
        gaps = tf.minimum(rows - below, above - rows)
        return tf.where(self._is_code, np.float32(0.0), gaps)

    def _new_pairs(self, rows: Tensor) -> tf.Tensor:
        """Returns which pairs of values no representative has, [n, pairs]."""
        numbers = self._pair_numbers(rows)
        values = tf.reshape(numbers, [1, -1])
        known = self._known.pairs
        first = tf.raw_ops.LowerBound(sorted_inputs=known, values=values)
        after = tf.raw_ops.UpperBound(sorted_inputs=known, values=values)
        return tf.reshape(first == after, tf.shape(numbers))

    def _pair_numbers(self, rows: Tensor) -> tf.Tensor:
        """Returns a number for each pair of values, int64 [n, pairs]."""
        codes = tf.cast(tf.round(rows * _STEPS), tf.int64)
        first = tf.gather(codes, self._pairs[:, 0], axis=1)
        second = tf.gather(codes, self._pairs[:, 1], axis=1)
        # Products that overflow tell pairs apart.
        which = np.arange(len(self._pairs), dtype=np.int64)
        return (which * _MIX + first) * _MIX + second

    def nearest(
        self,
        rows: Tensor,
        number: int = _NEIGHBOURS,
        own: np.ndarray | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns distances and indices of the nearest representatives, [n, number].

        Args:
            rows: Encoded rows, [n, p].
            number: How many are wanted.
            own: The index of the representative that each row is; None for other rows.
        """
        known = self._known
        # |x - r|^2 less |x|^2.
        twice = np.where(self._is_code, 0.0, 2.0).astype(np.float32)
        products = tf.matmul(twice * rows, known.rows, transpose_b=True)
        squares = known.squares - products
        texts = np.flatnonzero(self._is_code)
        if len(texts):
            codes = tf.gather(rows, texts, axis=1)[:, tf.newaxis]
            differ = codes != tf.gather(known.rows, texts, axis=1)
            squares += tf.linalg.matvec(
                tf.cast(differ, tf.float32), self._weights[texts]
            )
        if own is not None:
            places = np.stack([np.arange(len(own)), own], axis=1)
            infinite = np.full(len(own), np.inf, np.float32)
            squares = tf.tensor_scatter_nd_update(squares, places, infinite)
        nearest = tf.math.top_k(-squares, number).indices
        # The sums above lose digits.
        apart = self._squares_apart(rows[:, tf.newaxis], tf.gather(known.rows, nearest))
        return tf.sqrt(tf.reduce_sum(apart, axis=-1)), nearest

    def _squares_apart(self, rows: Tensor, others: Tensor) -> tf.Tensor:
        """Returns the squared distance of rows in each column, [..., p]."""
        squares = tf.square(rows - others)
        if self._is_code.any():
            differ = tf.cast(squares > 0.0, tf.float32)
            squares = tf.where(self._is_code, self._weights * differ, squares)
        return squares


def _features(model: keras.Model, layer: str) -> keras.Model:
    """Returns the network up to a layer that draws nothing."""
    from tfbbb.layers.variational import VariationalLayer

    try:
        features = keras.Model(model.inputs, model.get_layer(layer).output)
    except (AttributeError, ValueError) as error:
        raise ValueError(
            "`layer` must be the name of a layer of a functional or sequential model. "
            f"Received: layer={layer!r}, model={model.name!r}"
        ) from error
    drawing = [x.name for x in features.layers if isinstance(x, VariationalLayer)]
    if drawing:
        raise ValueError(
            "The features of a layer must not depend on weights that are drawn; choose "
            f"a layer before {drawing[0]!r}. Received: layer={layer!r}"
        )
    return features


def _some_rows(x: Structure, seed: int) -> tuple[Structure, np.ndarray]:
    """Returns at most 2000 rows of inputs, drawn at random, and their indices."""
    num_rows = len(tf.nest.flatten(x)[0])
    if num_rows <= MOST_REPRESENTATIVES:
        return x, np.arange(num_rows)
    generator = np.random.default_rng(seed)
    places = generator.choice(num_rows, MOST_REPRESENTATIVES, replace=False)
    some = tf.nest.map_structure(lambda column: np.asarray(column)[places], x)
    return some, places


def _representatives(values: np.ndarray, seed: int) -> np.ndarray:
    """Returns the indices of rows that represent all rows."""
    num_rows, width = values.shape
    # Those that say which numbers are missing, too.
    encoded = 1 + width + np.sum(~np.isfinite(values).all(axis=0))
    if num_rows < LEAST_ROWS or width > MOST_COLUMNS:
        raise ValueError(
            f"Familiarity needs at least {LEAST_ROWS} rows and at most {MOST_COLUMNS} "
            f"columns. Received: {num_rows} rows, {width} columns"
        )
    most = min(MOST_REPRESENTATIVES, int(_MOST_BYTES // (8 * encoded)))
    if num_rows <= most:
        return np.arange(num_rows)
    chosen = np.random.default_rng(seed).choice(num_rows, most, replace=False)
    return np.sort(chosen)


def _weights(rows: np.ndarray, is_code: np.ndarray) -> np.ndarray:
    """Returns the squared distance of two categories of each column, [p].

    Two rows at random have the squared distance 2 on average, as numbers do.
    """
    weights = np.ones(rows.shape[1], np.float32)
    for place in np.flatnonzero(is_code):
        counts = np.unique(rows[:, place], return_counts=True)[1]
        differ = 1.0 - np.sum(np.square(counts / len(rows)))
        weights[place] = min(2.0 / max(differ, 1e-6), _MOST_APART)
    return weights


def _gaps_between(rows: np.ndarray) -> np.ndarray:
    """Returns the distance of each value to the nearest other one, [n, p]."""
    order = np.argsort(rows, axis=0)
    steps = np.diff(np.take_along_axis(rows, order, axis=0), axis=0)
    ends = np.full((1, rows.shape[1]), np.inf, np.float32)
    steps = np.concatenate([ends, steps, ends])
    gaps = np.empty_like(rows)
    np.put_along_axis(gaps, order, np.minimum(steps[:-1], steps[1:]), axis=0)
    return gaps


def by_parts(
    function: Callable[[Tensor], tf.Tensor], rows: tf.Tensor, shape: Sequence[int] = ()
) -> tf.Tensor:
    """Applies a function to some rows at a time, in bounded memory.

    Args:
        function: Takes rows, [n, p], and returns float32 [n, *shape].
        rows: The rows.
        shape: The shape of the result of one row.
    """
    num_rows = tf.shape(rows)[0]

    def looped() -> tf.Tensor:
        parts = -(-num_rows // ROWS_AT_A_TIME)
        found = tf.TensorArray(tf.float32, parts, infer_shape=False)

        def step(
            number: Tensor, found: tf.TensorArray
        ) -> tuple[Tensor, tf.TensorArray]:
            first = number * ROWS_AT_A_TIME
            part = function(rows[first : first + ROWS_AT_A_TIME])
            return number + 1, found.write(number, part)

        _, found = tf.while_loop(
            lambda number, _: number < parts,
            step,
            (tf.constant(0), found),
            parallel_iterations=1,
        )
        return found.concat()

    found = tf.cond(num_rows <= ROWS_AT_A_TIME, lambda: function(rows), looped)
    return tf.ensure_shape(found, [rows.shape[0], *shape])
