"""The base class of likelihoods of classes."""

from __future__ import annotations

import math
from typing import Any

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import np, tf
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.bayes.likelihoods.likelihood import Likelihood, over_targets
from tfbbb.bayes.probability_outputs import check_logits_of_step
from tfbbb.bayes.target_shape import target_width


class Classification(Likelihood):
    """One of C classes, whose log probabilities follow from `outputs`.

    Targets are class indices, [rows, places...] with or without a last axis of 1, or
    one-hot rows, [rows, places..., C], whose mean and variance are p and p (1 - p).

    Args:
        ignore_class: Index of a void class, as in `keras.losses`: targets of this
            class, such as unlabelled pixels, do not count. Their log probability is 0.
    """

    task = "classification"

    def __init__(self, *, ignore_class: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.ignore_class = ignore_class

    def log_probabilities(self, outputs: Tensor) -> Tensor:
        """Returns the log probability of each class, [..., C], all of them finite."""
        raise NotImplementedError

    @property
    def target_widths(self) -> tuple[int, ...]:
        return 1, self.num_classes

    def check_targets(
        self, targets: ArrayLike, counted: ArrayLike = None
    ) -> np.ndarray:
        values = np.asarray(targets)
        width = target_width(values.shape, self._places, self.target_widths)
        anything: Any = False
        if counted is not None:
            places = values.shape[: 1 + len(self._places)]
            anything = ~over_targets(counted, np.empty(places))
        if width == self.num_classes:
            one_hot = np.isin(values, (0, 1)).all(axis=-1) & (values.sum(axis=-1) == 1)
            one_hot |= anything
            if not one_hot.all():
                first = np.unravel_index(np.argmin(one_hot), one_hot.shape)
                raise ValueError(
                    "One-hot targets must have a single 1, otherwise 0, in every row. "
                    f"Received: {values[first].tolist()} in row {int(first[0])}"
                )
            values = values.argmax(axis=-1)
        elif width == 1:
            values = values[..., 0]
        wanted = f"class indices 0 to {self.num_classes - 1}, or one-hot rows of "
        wanted += f"{self.num_classes}"
        if self.ignore_class is not None:
            wanted += f", or the void class {self.ignore_class}"
        try:
            if values.dtype == object:
                values = values.astype(np.float64)
            with np.errstate(invalid="ignore"):
                indices = values.astype(np.int32)
            valid = (indices == values) & (indices >= 0) & (indices < self.num_classes)
            if self.ignore_class is not None:
                valid |= values == self.ignore_class
        except (TypeError, ValueError):
            valid = np.zeros(values.shape, dtype=bool)
        if not np.all(valid | anything):
            first = np.unravel_index(np.argmin(valid | anything), valid.shape)
            if self._places and self.ignore_class is None:
                wanted += "; `ignore_class` of the likelihood names a void class"
            raise ValueError(
                f"The targets must be {wanted}. "
                f"Received: {values[first].tolist()!r} in row {int(first[0])}"
            )
        return indices

    def not_void(self, targets: ArrayLike) -> Tensor | None:
        if self.ignore_class is None:
            return None
        return self.labels(targets) != self.ignore_class

    def labels(self, targets: ArrayLike) -> Tensor:
        """Returns the class indices of a minibatch's targets, [rows, places...]."""
        targets = tf.convert_to_tensor(targets)
        width = target_width(targets.shape, self._places, self.target_widths)
        if width == self.num_classes:
            return tf.argmax(targets, axis=-1, output_type="int32")
        return tf.cast(targets[..., 0] if width == 1 else targets, "int32")

    def aligned(self, targets: ArrayLike, outputs: Tensor) -> Tensor:
        targets, rows = tf.convert_to_tensor(targets), tf.shape(outputs)[:-1]
        if targets.dtype == tf.bool:
            targets = tf.cast(targets, "int32")
        width = self.width_of(targets, outputs)

        def of_indices() -> Tensor:
            labels = tf.reshape(targets, rows)
            indices = tf.cast(labels, "int32")
            if not targets.dtype.is_floating:
                return indices
            return tf.where(labels == tf.cast(indices, labels.dtype), indices, -1)

        def of_one_hot() -> Tensor:
            # Both functions may be traced, so the last axis must fit either size.
            one_hot = tf.reshape(targets, tf.concat([rows, [-1]], 0))
            indices = tf.argmax(one_hot, axis=-1, output_type="int32")
            entries = tf.reduce_sum(tf.cast(one_hot != 0, "int32"), axis=-1)
            valid = (entries == 1) & (tf.reduce_max(one_hot, axis=-1) == 1)
            return tf.where(valid, indices, -1)

        if targets.shape.rank is None or targets.shape[-1] is None:
            is_index = tf.size(targets) == tf.reduce_prod(rows)
            return tf.cond(is_index, of_indices, of_one_hot)
        return of_one_hot() if width == self.num_classes else of_indices()

    def checks_of_step(self, given: ArrayLike, aligned: Tensor) -> list[Tensor]:
        given = tf.convert_to_tensor(given)
        if not given.dtype.is_floating and given.shape.rank == aligned.shape.rank:
            # The operation that picks the probability checks indices itself.
            return []
        message = (
            "The targets must be class indices, or one-hot rows with a single 1: soft "
            "labels, as of label smoothing or mixed rows, have no likelihood. Received:"
        )
        return [tf.debugging.Assert(tf.reduce_all(aligned != -1), [message, given])]

    def negative_log_likelihood(
        self,
        targets: ArrayLike,
        outputs: Tensor,
        weights: Tensor | None = None,
        variance: Tensor | None = None,
    ) -> Tensor:
        check_logits_of_step(outputs)
        return super().negative_log_likelihood(targets, outputs, weights, variance)

    def tempered(self, outputs: Tensor, temperature: Tensor) -> Tensor:
        """Divides the logits by a temperature and returns the new outputs."""
        outputs = self.as_array(outputs)
        return outputs / ops.cast(temperature, outputs.dtype)

    def probabilities(self, outputs: Tensor) -> Tensor:
        return ops.exp(self.log_probabilities(outputs))

    def mean(self, outputs: Tensor) -> Tensor:
        return self.probabilities(outputs)

    def variance(self, outputs: Tensor) -> Tensor:
        probabilities = self.probabilities(outputs)
        return probabilities * (1.0 - probabilities)

    def log_prob(self, targets: ArrayLike, outputs: Tensor) -> Tensor:
        outputs = self.as_array(outputs)
        targets = ops.broadcast_to(ops.cast(targets, "int32"), ops.shape(outputs)[:-1])
        if self.ignore_class is None:
            return self._log_prob(targets, outputs)
        ignored = targets == self.ignore_class
        log_prob = self._log_prob(ops.where(ignored, 0, targets), outputs)
        return ops.where(ignored, ops.zeros_like(log_prob), log_prob)

    def _log_prob(self, targets: Tensor, outputs: Tensor) -> Tensor:
        """Returns the log probability of classes [...], NaN or an error for others."""
        log_probabilities = self.log_probabilities(outputs)
        chosen = ops.gather(
            log_probabilities,
            targets[..., ops.newaxis],
            batch_dims=len(log_probabilities.shape) - 1,
        )[..., 0]
        # On an accelerator, the gathered value of another index is 0.
        known = (targets >= 0) & (targets < self.num_classes)
        return ops.where(known, chosen, ops.cast(math.nan, chosen.dtype))

    @property
    def noise_size(self) -> int:
        return 1

    def sample(self, outputs: Tensor, noise: Tensor) -> Tensor:
        """Returns class indices, [...], from standard normal noise [..., 1]."""
        cumulative = ops.cumsum(self.probabilities(outputs), axis=-1)
        noise = ops.cast(noise, cumulative.dtype)
        uniform = 0.5 * ops.erfc(-noise * math.sqrt(0.5))
        # Leave out the last cumulative probability, which is 1 up to rounding.
        return ops.reduce_sum(
            ops.cast(uniform > cumulative[..., :-1], "int32"), axis=-1
        )
