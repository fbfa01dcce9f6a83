"""The likelihood of ordered classes."""

from __future__ import annotations

from typing import Any

from tfbbb.base import array_ops as ops
from tfbbb.base.batch_layout import with_gradient_times
from tfbbb.base.lazy import keras, np, tf
from tfbbb.base.numbers import positive_integer
from tfbbb.base.types import ArrayLike, Config, Tensor
from tfbbb.bayes.likelihoods.classification import Classification
from tfbbb.bayes.likelihoods.likelihood import over_targets, register
from tfbbb.bayes.likelihoods.regression import positive

_SMALLEST_GAP = 1e-7


@register(
    "ordered_logistic", "One of several ordered classes, which are whole numbers."
)
class OrderedLogistic(Classification):
    """One of C ordered classes, by the cumulative logit model (McCullagh 1980).

    The class says between which cutpoints a logistic variable around `loc` lies:

        P(y <= c | f) = sigmoid(cutpoints[c] - loc),  c = 0, ..., C - 2

    `loc` is the output of the network. The C - 1 ordered cutpoints are learned, the
    same for all rows: the first is free, and each of the others exceeds the one before
    by a softplus. They start where the classes are as frequent as in the training
    targets for `loc = 0`.

    Targets, mean, variance and probabilities are as for `Categorical`; quantiles are
    class indices.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.OrderedLogistic(num_classes=4)
    >>> likelihood.build((None, 1))
    >>> likelihood.probabilities([[0.0]]).numpy().round(3).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    >>> likelihood.quantile(0.6, [[0.0]]).numpy().tolist()
    [[2.0]]

    Args:
        num_classes: Number C of classes, at least two. A model needs it.
    """

    integer_classes = True
    ordered = True
    discrete = True

    def __init__(self, num_classes: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        if num_classes is not None and positive_integer("num_classes", num_classes) < 2:
            raise ValueError(
                "OrderedLogistic needs at least two classes. "
                f"Received: num_classes={num_classes}"
            )
        self._given_num_classes = num_classes
        if num_classes is not None:
            self.num_classes = num_classes

    def get_config(self) -> Config:
        return {**super().get_config(), "num_classes": self._given_num_classes}

    @property
    def learns(self) -> bool:
        return True

    @property
    def learned_variables(self) -> list[keras.Variable]:
        return [self._raw_cutpoints]

    def num_outputs(self, num_targets: int | None = None) -> int:
        """Returns 1, the number of outputs for any number of classes."""
        given = self._given_num_classes
        if None not in (num_targets, given) and num_targets != given:
            raise ValueError(
                f"The likelihood was made for {given} classes. "
                f"Received: num_targets={num_targets}"
            )
        return 1

    def build(self, output_shape: tuple[int | None, ...]) -> None:
        if self._given_num_classes is None:
            raise ValueError(
                "OrderedLogistic must know the number of classes, since its cutpoints "
                "lie between them: `OrderedLogistic(num_classes=5)`. "
                "Received: num_classes=None"
            )
        if output_shape[-1] != 1:
            raise ValueError(
                "OrderedLogistic needs one output, the location, whatever the number "
                f"of classes. Received: output_shape={output_shape}"
            )
        super().build(output_shape)
        num_cutpoints = self.num_classes - 1

        def variable(
            name: str, shape: tuple[int, ...], initial: Tensor, trainable: bool = False
        ) -> keras.Variable:
            return self.add_weight(
                name=name,
                shape=shape,
                initializer=lambda shape, dtype=None: tf.cast(initial, dtype),
                trainable=trainable,
                dtype="float32",
                autocast=False,
            )

        equal = initial_cutpoints(np.ones(self.num_classes))
        self._initial_cutpoints = variable("initial_cutpoints", (num_cutpoints,), equal)
        # 1 after `adapt`, else 0.
        self._adapted = variable("adapted", (), 0.0)
        # The value 0 gives the initial cutpoints.
        leading = () if self.members == 1 else (self.members,)
        shape = (*leading, num_cutpoints)
        self._raw_cutpoints = variable("raw_cutpoints", shape, np.zeros(shape), True)

    @property
    def adapted(self) -> bool:
        return bool(self._adapted.numpy())

    def adapt(
        self,
        targets: ArrayLike,
        counted: ArrayLike = None,
        double: bool = False,
        exposures: ArrayLike = None,
    ) -> None:
        if self.adapted:
            return
        labels = self.check_targets(targets, counted)
        if counted is not None:
            labels = labels[over_targets(counted, labels)]
        labels = labels[labels != self.ignore_class].ravel()
        # Adds half a row to every class, so that no class has the probability 0.
        counts = np.bincount(labels, minlength=self.num_classes) + 0.5
        self._initial_cutpoints.assign(initial_cutpoints(counts))
        self._adapted.assign(1.0)

    def of_members(self, outputs: Tensor, member: int | Tensor) -> Tensor:
        outputs = tf.convert_to_tensor(outputs)
        if self.members == 1:
            return outputs
        each = with_gradient_times(
            tf.convert_to_tensor(self._raw_cutpoints), self.members
        )
        raw = tf.cast(tf.gather(each, member), outputs.dtype)
        shape = tf.concat([tf.shape(outputs)[:-1], [self.num_classes - 1]], 0)
        raw = tf.ensure_shape(
            tf.broadcast_to(raw, shape), [*outputs.shape[:-1], self.num_classes - 1]
        )
        return tf.concat([outputs, raw], axis=-1)

    def tempered(self, outputs: Tensor, temperature: Tensor) -> Tensor:
        """Divides the logits of `P(y <= c)` by a temperature, in one more column."""
        outputs = self.as_array(outputs)
        log_temperature = ops.log(ops.cast(temperature, outputs.dtype))
        column = log_temperature * ops.ones_like(outputs[..., :1])
        return ops.concat([outputs, column], axis=-1)

    def parameters(self, outputs: Tensor) -> dict[str, Tensor]:
        location, log_scale, cutpoints = self._parts(outputs)
        return {
            "loc": location,
            "scale": ops.exp(log_scale),
            "cutpoints": cutpoints + ops.zeros_like(location),
        }

    def log_probabilities(self, outputs: Tensor) -> Tensor:
        return log_probabilities_between(*self._parts(outputs))

    def cdf(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        """Returns P(y <= values | outputs), [..., 1]."""
        cumulative = self._cumulative(outputs)
        values = ops.floor(ops.cast(values, cumulative.dtype))
        index = ops.clip_by_value(values, -1.0, self.num_classes - 1.0)
        return _picked(cumulative, index)

    def prob(self, values: ArrayLike, outputs: Tensor) -> Tensor:
        """Returns P(y = values | outputs), [..., 1], 0 if no class has this index."""
        probabilities = self.probabilities(outputs)
        return _picked(probabilities, ops.cast(values, probabilities.dtype))

    def quantile(self, levels: ArrayLike, outputs: Tensor) -> Tensor:
        """Returns the least class whose `cdf` reaches the levels, [..., 1]."""
        cumulative = self._cumulative(outputs)
        below = cumulative[..., :-1] < ops.cast(levels, cumulative.dtype)
        return ops.reduce_sum(ops.cast(below, cumulative.dtype), axis=-1, keepdims=True)

    def _cumulative(self, outputs: Tensor) -> Tensor:
        """Returns P(y <= c) of every class, [..., C]."""
        location, log_scale, cutpoints = self._parts(outputs)
        below = ops.sigmoid((cutpoints - location) * ops.exp(-log_scale))
        return ops.concat([below, ops.ones_like(below[..., :1])], axis=-1)

    def _parts(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns location and log scale, [..., 1], and cutpoints, [C - 1] or more."""
        outputs = self.at_least_float32(outputs)
        learned = self.num_classes - 1 if self.members > 1 else 0
        tempered = outputs.shape[-1] - 1 - learned
        if tempered not in (0, 1):
            raise ValueError(
                f"The likelihood needs {1 + learned} outputs of each row. "
                f"Received: outputs of shape {tuple(outputs.shape)}"
            )
        sizes = [1, learned, tempered]
        location, raw, log_temperature = ops.split(outputs, sizes, axis=-1)
        if not learned:
            raw = self._raw_cutpoints
        if not tempered:
            log_temperature = ops.zeros_like(location)
        initial = ops.cast(self._initial_cutpoints, outputs.dtype)
        cutpoints = cutpoints_of(initial, ops.cast(raw, outputs.dtype))
        return location, log_temperature, cutpoints


def initial_cutpoints(counts: np.ndarray) -> np.ndarray:
    """Returns the cutpoints that give classes, [C, ...], these counts at `loc = 0`."""
    below = np.cumsum(counts / counts.sum(axis=0), axis=0)[:-1]
    return np.log(below) - np.log1p(-below)


def cutpoints_of(initial: Tensor, raw: Tensor) -> Tensor:
    """Returns increasing cutpoints, [..., C - 1], which are initial ones for 0."""
    first = initial[..., :1] + raw[..., :1]
    increments = (initial[..., 1:] - initial[..., :-1]) * positive(raw[..., 1:])
    return ops.cumsum(ops.concat([first, increments], axis=-1), axis=-1)


def log_probabilities_between(
    location: Tensor, log_scale: Tensor, cutpoints: Tensor
) -> Tensor:
    """Returns log probabilities of a logistic variable between cutpoints, [..., C]."""
    # sigmoid(b) - sigmoid(a) = sigmoid(b) sigmoid(-a) (1 - exp(a - b))
    inverse_scale = ops.exp(-log_scale)
    standardized = (cutpoints - location) * inverse_scale
    gaps = (cutpoints[..., 1:] - cutpoints[..., :-1]) * inverse_scale
    # Single precision may lose the distance of cutpoints far from 0.
    gaps = ops.maximum(gaps, _SMALLEST_GAP)
    end = ops.zeros_like(standardized[..., :1])
    below_upper = ops.concat([ops.log_sigmoid(standardized), end], axis=-1)
    above_lower = ops.concat([end, ops.log_sigmoid(-standardized)], axis=-1)
    between = ops.log(-ops.expm1(-gaps)) + ops.zeros_like(standardized[..., 1:])
    return below_upper + above_lower + ops.concat([end, between, end], axis=-1)


def _picked(of_classes: Tensor, index: Tensor) -> Tensor:
    """Returns the element of [..., C] at each index [..., 1], 0 for other indices."""
    classes = ops.range(of_classes.shape[-1], dtype=of_classes.dtype)
    return ops.reduce_sum(
        ops.where(index == classes, of_classes, 0.0), axis=-1, keepdims=True
    )
