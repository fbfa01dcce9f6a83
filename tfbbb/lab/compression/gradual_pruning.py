"""A callback that removes weights while a model trains."""

from collections.abc import Callable

import keras
import tensorflow as tf

from tfbbb.base.types import Logs, Tensor
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.model.compression import ranking as rankings
from tfbbb.model.compression.pruning import (
    Removal,
    Scope,
    validate_share,
    weights_of,
)
from tfbbb.model.compression.ranking import Ranking
from tfbbb.model.compression.removal import (
    REMOVED,
    check_removable,
    is_removed,
)


class GradualPruning(keras.callbacks.Callback):
    """Removes weights while a model trains, so that the others make up for them.

    Between the epochs `begin * epochs` and `end * epochs` of `fit`, the share of
    removed weights rises as a cubic (Zhu and Gupta 2017, equation 1),

        share_t = share * (1 - (1 - t)^3),    0 <= t <= 1,

    fast at first, while most weights are of little use. At the start of each of these
    epochs, the weights of least importance are removed as by `prune`: their posterior
    has mean 0 and variance 0, and further steps leave them so. The remaining epochs
    train the weights that are left. The trained model is pruned; `compact` makes it
    smaller.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> inputs = keras.Input((3,))
    >>> hidden = tfbbb.layers.DenseVariational(8, "relu")(inputs)
    >>> model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
    >>> model.compile("adam")
    >>> x = np.random.normal(size=(80, 3))
    >>> history = model.fit(
    ...     x, x[:, :1], epochs=8, verbose=0,
    ...     callbacks=[tfbbb.lab.compression.GradualPruning(0.5)],
    ... ).history
    >>> tfbbb.compression.share_removed(model)  # of 32 + 9 weights
    0.487804

    The share of each epoch is in the history as `share_removed`.

    Args:
        share: Share of the weights to remove, biases included, from 0 to 1.
        begin: Share of the epochs after which the first weights are removed.
        end: Share of the epochs after which the last weights are removed.
        ranking: As for `prune`.
        scope: As for `prune`.

    Raises:
        ValueError: `share`, `begin` or `end` is not between 0 and 1, `begin` is greater
            than `end`, `ranking` or `scope` is unknown, or, when training begins, the
            model has no weights that can be removed one by one.
    """

    def __init__(
        self,
        share: float,
        begin: float = 0.2,
        end: float = 0.7,
        ranking: str | Ranking = "signal_to_noise",
        scope: Scope = "global",
    ) -> None:
        super().__init__()
        self.share = validate_share(share)
        self.begin = validate_share(begin, "begin")
        self.end = validate_share(end, "end")
        if begin > end:
            raise ValueError(
                f"`begin` must be at most `end`. Received: begin={begin!r}, end={end!r}"
            )
        self.ranking = rankings.get(ranking)
        self.scope = scope
        self._kept: list[_KeptWeights] = []

    def share_at(self, epoch: int, epochs: int) -> float:
        """Returns the share that is removed while an epoch trains.

        Args:
            epoch: Number of the epoch, from 0.
            epochs: Number of epochs of the training.
        """
        first, last = self.begin * epochs, self.end * epochs
        if epoch + 1 >= last:
            return self.share
        if epoch + 1 <= first:
            return 0.0
        return self.share * (1.0 - (1.0 - (epoch + 1 - first) / (last - first)) ** 3)

    def on_train_begin(self, logs: Logs = None) -> None:
        """Makes the training step leave removed weights as they are."""
        self._kept = []
        for path, weights in weights_of(self.model).items():
            for weight in weights:
                check_removable(f"{path}/{weight.name}", weight)
                self._kept.append(_KeptWeights(weight))
        self._trace_again()

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Removes the weights of least importance."""
        removal = Removal(self.model, self.ranking, self.scope)
        removal.remove(self.share_at(epoch, self.params["epochs"]))
        for kept in self._kept:
            kept.update()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Adds the share of removed weights to the logs."""
        if logs is not None:
            logs["share_removed"] = self.share_at(epoch, self.params["epochs"])

    def on_train_end(self, logs: Logs = None) -> None:
        """Lets later training change all weights, as after `prune`."""
        for kept in self._kept:
            kept.release()
        self._kept = []
        self._trace_again()

    def _trace_again(self) -> None:
        # The compiled step has the constraints of the variables when it was traced.
        self.model.make_train_function(force=True)


class _KeptWeights:
    """Constraints by which a training step leaves the removed weights of a tensor.

    Args:
        weight: A weight tensor with independent normals.
    """

    def __init__(self, weight: VariationalWeight) -> None:
        self._weight = weight
        self._keep = tf.Variable(~is_removed(weight), trainable=False)
        self._before = {}
        for name, value in REMOVED.items():
            variable = weight.variables[name]
            self._before[name] = variable.constraint
            variable.constraint = _Keep(self._keep, value, variable.constraint)

    def update(self) -> None:
        """Leaves the weights that are removed now as they are."""
        self._keep.assign(~is_removed(self._weight))

    def release(self) -> None:
        """Restores the constraints of the variables."""
        for name, constraint in self._before.items():
            self._weight.variables[name].constraint = constraint


class _Keep(keras.constraints.Constraint):
    """Sets the values of removed weights.

    Args:
        keep: Mask of the weights that are not removed.
        value: The value of removed weights.
        inner: The constraint on all weights, or None.
    """

    def __init__(
        self, keep: tf.Variable, value: float, inner: Callable[[Tensor], Tensor] | None
    ) -> None:
        self._keep, self._value, self._inner = keep, value, inner

    def __call__(self, w: Tensor) -> Tensor:
        values = tf.convert_to_tensor(w if self._inner is None else self._inner(w))
        return tf.where(self._keep, values, tf.cast(self._value, values.dtype))
