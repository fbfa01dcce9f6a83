"""Members that leave out folds of the rows, and predict the rows they left out."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base.call_context import call_with
from tfbbb.base.types import Structure
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.tables.splitting import draw_folds

# Rows times members times draws that flow through the network at once.
_MOST_AT_ONCE = 20_000


@dataclass(frozen=True)
class MemberRows:
    """The training rows of each member of an ensemble.

    Members are ordered by temperature, then by repeat, then by fold. In each repeat,
    the rows are divided into folds anew, and member k leaves out fold k: `folds` are
    [repeats, rows], -1 for a row that no member leaves out, None if all members train
    on all rows. By time, every second member leaves out the last rows.
    """

    temperatures: tuple[float, ...]
    group_size: int
    folds: np.ndarray | None
    row_weights: np.ndarray | None = None

    @classmethod
    def draw(
        cls,
        num_rows: int,
        temperatures: tuple[float, ...],
        group_size: int,
        repeats: int,
        *,
        seed: int = 0,
        classes: np.ndarray | None = None,
        groups: np.ndarray | None = None,
        last: np.ndarray | None = None,
        row_weights: np.ndarray | None = None,
    ) -> "MemberRows":
        """Divides rows into folds of equal size, stratified by class."""
        if not repeats:
            return cls(temperatures, group_size, None, row_weights)
        if last is not None:
            repeats = 1 if group_size % 2 else group_size // 2
            folds = np.tile(np.where(last, 0, -1), (repeats, 1))
            return cls(temperatures, group_size, folds, row_weights)
        generator = np.random.default_rng([seed, num_rows])
        num_folds = group_size // repeats
        folds = np.empty((repeats, num_rows), dtype=np.int32)
        for repeat in range(repeats):
            if groups is not None:
                folds[repeat] = draw_folds(
                    groups, num_folds, generator=generator, stratify=classes
                )
                continue
            order = generator.permutation(num_rows)
            if classes is not None:
                # A stable sort keeps the random order within each class.
                order = order[np.argsort(classes[order], kind="stable")]
            folds[repeat, order] = np.arange(num_rows) % num_folds
        return cls(temperatures, group_size, folds, row_weights)

    @property
    def num_members(self) -> int:
        """Number of members of all groups."""
        return len(self.temperatures) * self.group_size

    @property
    def num_folds(self) -> int:
        """Number of folds of a repeat; 0 if no row is left out."""
        return 0 if self.folds is None else self.group_size // len(self.folds)

    @cached_property
    def left_out(self) -> np.ndarray:
        """The places of the rows that members leave out, in order."""
        return np.flatnonzero([] if self.folds is None else self.folds[0] >= 0)

    @cached_property
    def measuring(self) -> "MemberRows":
        """The members with the rows that measure them: those that some leave out."""
        if self.folds is None or len(self.left_out) == self.folds.shape[1]:
            return self
        given = self.row_weights
        return replace(
            self,
            folds=self.folds[:, self.left_out],
            row_weights=None if given is None else given[self.left_out],
        )

    @cached_property
    def weights(self) -> np.ndarray | None:
        """The weight of each row for each member, 0 if it leaves the row out.

        [rows, members]; [rows, 1] if no row is left out; None for all 1.
        """
        weights = None
        if self.row_weights is not None:
            weights = np.asarray(self.row_weights, np.float32)[:, np.newaxis]
        if self.folds is None:
            return weights
        left_out = np.tile(self._left_out_by(self.folds), (len(self.temperatures), 1)).T
        used = 1.0 - left_out.astype(np.float32)
        return used if weights is None else used * weights

    @property
    def sizes(self) -> np.ndarray | None:
        """Total weight of the rows of each member, [members]; None for all rows."""
        if self.folds is None or self.weights is None:
            return None
        return self.weights.sum(axis=0, dtype=np.float64).astype(np.float32)

    @property
    def mean_weights(self) -> np.ndarray | None:
        """The mean weight of a row for each member, or for all; None for 0 and 1."""
        if self.row_weights is None or self.weights is None:
            return None
        return self.weights.mean(axis=0, dtype=np.float64).astype(np.float32)

    def total_weight(self, num_rows: int) -> float:
        """Returns the number of rows, or the sum of their weights."""
        return float(num_rows if self.row_weights is None else self.row_weights.sum())

    @property
    def relative_temperatures(self) -> np.ndarray | None:
        """The temperature of each member, [members]; None if all are 1."""
        if self.temperatures == (1.0,):
            return None
        return np.repeat(np.asarray(self.temperatures, np.float32), self.group_size)

    @property
    def description(self) -> str:
        """What is trained, for people."""
        if self.num_members == 1:
            return "training one posterior"
        text = f"training {self.num_members} members"
        if len(self.temperatures) > 1:
            *first, last = [f"{value:g}" for value in self.temperatures]
            text += f" at the temperatures {', '.join(first)} and {last}"
        return text

    def group(self, number: int) -> range:
        """Returns the indices of the members of one temperature."""
        return range(number * self.group_size, (number + 1) * self.group_size)

    def out_of_sample_outputs(
        self, model: BayesianModel, inputs: Structure, num_rows: int, draws: int
    ) -> np.ndarray:
        """Returns outputs for each row, by the members that did not train on it."""
        predicts = np.ones((self.group_size, num_rows), dtype=bool)
        if self.folds is not None:
            predicts = self._left_out_by(self.folds)
        rows_of = list(map(np.flatnonzero, predicts))
        # Members with fewer rows predict the first one again.
        places = np.zeros((self.group_size, max(map(len, rows_of))), dtype=int)
        for place, rows in zip(places, rows_of, strict=True):
            place[: len(rows)] = rows
        groups = len(self.temperatures)
        drawn = _outputs_of_members(model, inputs, np.tile(places, (groups, 1)), draws)
        # [members, places, draws, P'] to the rows that the places stand for.
        before = np.cumsum(predicts, axis=0) - 1
        shape = (groups, num_rows, before[:, 0].max() + 1, *drawn.shape[2:])
        found = np.empty(shape, drawn.dtype)
        for member, outputs in enumerate(drawn):
            group, position = divmod(member, self.group_size)
            rows = rows_of[position]
            found[group, rows, before[position, rows]] = outputs[: len(rows)]
        return found.reshape(groups, num_rows, -1, drawn.shape[-1])

    def _left_out_by(self, folds: np.ndarray) -> np.ndarray:
        """Which rows each member of a temperature leaves out, [members, rows]."""
        fold = np.arange(self.num_folds)[:, np.newaxis]
        return (folds[:, np.newaxis] == fold).reshape(self.group_size, -1)


def _outputs_of_members(
    model: BayesianModel, inputs: Structure, places: np.ndarray, draws: int
) -> np.ndarray:
    """Returns outputs of each member for its own rows, [members, n, draws, P']."""
    inputs = tree.map_structure(tf.convert_to_tensor, inputs)
    members, num_places = places.shape

    def outputs(rows: tf.Tensor) -> tf.Tensor:
        batch = tree.map_structure(
            lambda x: tf.gather(x, tf.reshape(rows, [-1])), inputs
        )

        def draw(_: Any) -> tf.Tensor:
            # The batch holds the rows of each member already.
            with call_with(samples_in_batch=1):
                drawn = model(batch, training=False)
            return model.with_learned_parameters(drawn)

        drawn = tf.map_fn(draw, tf.range(draws), fn_output_signature=tf.float32)
        return tf.transpose(
            tf.reshape(drawn, [draws, members, -1, drawn.shape[-1]]), [1, 2, 0, 3]
        )

    # A concrete function gives no warning that each training traces one of its own.
    rows = tf.TensorSpec([members, None], tf.int64)
    traced = tf.function(outputs, autograph=False).get_concrete_function(rows)
    at_once = max(1, _MOST_AT_ONCE // members)
    blocks = [
        traced(tf.constant(places[:, first : first + at_once], tf.int64)).numpy()
        for first in range(0, num_places, at_once)
    ]
    return np.concatenate(blocks, axis=1)
