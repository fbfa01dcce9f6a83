"""The compiled prediction of one model by one method."""

import functools
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.layers.sharing import sublayers
from tfbbb.likelihoods import Likelihood
from tfbbb.prediction import mixture
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.sampler import Sampler

# 256 MB of float32: outputs beyond that are not kept but computed again when asked for.
_MOST_OUTPUTS_KEPT = 1 << 26
# 32 MB of float64, in which densities are computed.
_OUTPUTS_AT_A_TIME = 1 << 22


class Computation:
    """Computes a model's posterior predictive, traced once for any number of rows.

    A result can ask for more later, from the weights that it was made with, whatever
    the model has become: it keeps the network's outputs, or, where these are too many,
    the values of the variables, from which they are computed again.

    Args:
        sampler: Draws the network's outputs.
        likelihood: p(y | outputs).
    """

    def __init__(self, sampler: Sampler, likelihood: Likelihood):
        self._sampler = sampler
        self._likelihood = likelihood
        variables = [*sampler.model.variables, *likelihood.variables]
        self._variables = list({id(v): v for v in variables}.values())
        self._outputs_per_draw = sampler.event_shape.num_elements() or 1

    @classmethod
    def of(
        cls, model: keras.Model, likelihood: Likelihood, method: str, inputs: Any
    ) -> "Computation":
        """Returns the model's computation, made at the first call of its kind."""
        kinds = tree.map_structure(lambda x: (tuple(x.shape[1:]), x.dtype.name), inputs)
        layers = [id(layer) for layer in sublayers(model)]
        key: tuple[Any, ...] = (method, *layers, repr(kinds))
        if likelihood not in sublayers(model):
            # Like ones share a computation, which a copy keeps as it is.
            config = {**likelihood.get_config(), "name": None}
            state = likelihood.get_weights()
            key = (*key, type(likelihood), repr(config), repr(state))
        # Past Keras' tracking of attributes: this is no part of the model's state.
        known = model.__dict__.setdefault("_predictive_computations", {})
        if key not in known:
            sampler = Sampler(model, likelihood, method, inputs)
            if likelihood not in sublayers(model):
                likelihood = _copy(likelihood, sampler.event_shape)
            known[key] = cls(sampler, likelihood)
        return known[key]

    def predict(
        self, inputs: Any, num_rows: int, num_samples: int, seed: int
    ) -> Predictive:
        """Returns the predictive distribution of each row.

        Args:
            inputs: Tensors whose leading dimension is `num_rows`.
            num_rows: Number of rows.
            num_samples: Number of posterior samples S.
            seed: Seed of the draws.
        """
        draws = (tf.constant(num_samples, tf.int32), tf.constant((0, seed), tf.int32))
        likelihood_state = _values_of(self._likelihood.variables)
        outputs_per_row = num_samples * self._outputs_per_draw
        rows = max(1, _OUTPUTS_AT_A_TIME // outputs_per_row)
        slices = [slice(first, first + rows) for first in range(0, num_rows, rows)]
        if num_rows * outputs_per_row <= _MOST_OUTPUTS_KEPT:
            summary = _finite(self._live(inputs, *draws, []))
            outputs = summary.pop("outputs")

            def blocks() -> Iterator[Any]:
                return (outputs[block] for block in slices)

        else:
            summary = _finite(self._live_summary(inputs, *draws, []))
            values = [value for _, value in _values_of(self._variables)]

            def blocks() -> Iterator[Any]:
                for block in slices:
                    part = tree.map_structure(lambda x, block=block: x[block], inputs)
                    yield self._of_snapshot(part, *draws, values)["outputs"]

        return Predictive(
            self._likelihood, likelihood_state, summary, blocks, num_samples, seed
        )

    @functools.cached_property
    def _live(self) -> Any:
        return self._compiled(keep_outputs=True)

    @functools.cached_property
    def _live_summary(self) -> Any:
        return self._compiled(keep_outputs=False)

    @functools.cached_property
    def _of_snapshot(self) -> Any:
        return self._compiled(keep_outputs=True, snapshot=True)

    def _compiled(self, *, keep_outputs: bool, snapshot: bool = False) -> Any:
        """Returns a function of inputs, number of samples, seed and variables' values.

        Only that of a snapshot takes values; the others read the live variables.
        """
        replaced = self._variables if snapshot else []
        signature = [
            self._sampler.input_specs,
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([2], tf.int32),
            [tf.TensorSpec(variable.shape, variable.dtype) for variable in replaced],
        ]

        @tf.function(input_signature=signature, autograph=False)
        def compute(inputs: Any, num_samples: Any, seed: Any, values: Any) -> Any:
            state = zip(replaced, values, strict=True)
            with keras.StatelessScope(state_mapping=state):
                return self._compute(inputs, num_samples, seed, keep_outputs)

        return compute.get_concrete_function()

    def _compute(
        self, inputs: Any, num_samples: Any, seed: Any, keep_outputs: bool
    ) -> dict[str, tf.Tensor]:
        sampler = self._sampler

        def summarize(outputs: Any, first: Any) -> dict[str, tf.Tensor]:
            summary = summarized(self._likelihood, outputs)
            return {**summary, "outputs": outputs} if keep_outputs else summary

        specs = summary_specs(self._likelihood, sampler.event_shape)
        if keep_outputs:
            specs["outputs"] = tf.TensorSpec(
                [None, None, *sampler.event_shape], sampler.output_dtype
            )
        return sampler.map_rows(summarize, inputs, num_samples, seed, specs)


def summarized(likelihood: Likelihood, outputs: Any) -> dict[str, tf.Tensor]:
    """Returns every summary that the likelihood's task has, [rows, ...], float64."""
    summary = mixture.moments(likelihood, outputs)
    if likelihood.task == "classification":
        summary |= mixture.information(likelihood, outputs)
    return summary


def summary_specs(
    likelihood: Likelihood, event_shape: tf.TensorShape
) -> dict[str, tf.TensorSpec]:
    """Returns the `tf.TensorSpec` of every tensor that `summarized` returns."""
    example = tf.function(lambda x: summarized(likelihood, x), autograph=False)
    spec = tf.TensorSpec([None, None, *event_shape], tf.float32)
    return {
        name: tf.TensorSpec(tensor.shape, tensor.dtype)
        for name, tensor in example.get_concrete_function(
            spec
        ).structured_outputs.items()
    }


def _finite(summary: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns `summary`, or raises ValueError where a row has no finite answer."""
    variance = np.asarray(summary["variance"])
    finite = np.isfinite(variance).reshape(len(variance), -1).all(axis=1)
    if not finite.all():
        raise ValueError(
            "The model has no finite answer for every row: look for values in `x` that "
            "are not numbers or far too large, or for training that diverged. "
            f"Received: row {int(np.argmin(finite))} of {len(finite)}"
        )
    return summary


def _copy(likelihood: Likelihood, event_shape: tf.TensorShape) -> Likelihood:
    copy = type(likelihood).from_config(likelihood.get_config())
    copy.build((None, *event_shape))
    if likelihood.built:
        copy.set_weights(likelihood.get_weights())
    return copy


def _values_of(variables: list[keras.Variable]) -> list[tuple[keras.Variable, Any]]:
    """Returns each variable with its value now; no copy until it is assigned to."""
    return [(variable, tf.convert_to_tensor(variable)) for variable in variables]
