"""The posterior predictive of any Keras model with variational layers."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb import likelihoods
from tfbbb.layers import VariationalLayer
from tfbbb.layers.sharing import graph_of, sublayers
from tfbbb.likelihoods import Likelihood
from tfbbb.prediction import mixture
from tfbbb.prediction.method import resolve_method
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.sampler import Sampler

# 256 MB of float32: outputs beyond that are not kept but computed again when asked for.
_MOST_OUTPUTS_KEPT = 1 << 26


def predictive(
    model: keras.Model,
    x: Any,
    *,
    likelihood: Any = None,
    num_samples: int = 100,
    method: str = "auto",
    seed: int = 0,
) -> Predictive:
    """Computes the posterior predictive distribution of each row of `x`.

    `p(y | x, data) = E_q(w)[p(y | f(x, w))]`, by S draws from the posterior.

    Example:

    >>> import keras, tfbbb
    >>> model = keras.Sequential([
    ...     keras.Input((3,)),
    ...     tfbbb.layers.DenseVariational(1, kl_weight=1 / 80),
    ... ])
    >>> model.compile("adam", loss="mse")  # a Normal whose variance is 1/2
    >>> likelihood = tfbbb.likelihoods.Normal(scale=0.5**0.5)
    >>> tfbbb.predictive(model, [[1.0, 2.0, 3.0]], likelihood=likelihood)
    Predictive(rows=1, targets=1, num_samples=100)

    Args:
        model: A built Keras model: functional, sequential or subclassed, with one
            output tensor. Layers that are not variational run in inference mode.
        x: Inputs of the rows, as for `model.predict`.
        likelihood: p(y | f), as the model was trained: `"categorical"` or a
            `tfbbb.likelihoods.Likelihood`. Not needed for a `tfbbb.BayesianModel`.
        num_samples: Number S of draws from the posterior, two at the least.
        method: `"local"` draws pre-activations in layers where that is exact, with
            noise that is shared by all rows; `"weight"` draws weights; `"auto"` takes
            the faster one. With a named method, a row's answer does not depend on the
            rows beside it.
        seed: The same seed gives the same answer.

    Returns:
        A `tfbbb.Predictive`.

    Raises:
        ValueError: For fewer than two samples, no rows, an unknown method, a model
            without variational layers, or a missing likelihood.
    """
    likelihood = _likelihood_of(model, likelihood)
    if num_samples < 2:
        raise ValueError(
            "It takes two samples at the least to tell epistemic from aleatoric "
            f"variance. Received: num_samples={num_samples}"
        )
    if not any(isinstance(layer, VariationalLayer) for layer in sublayers(model)):
        raise ValueError(
            "The model has no variational layer, so its prediction has no epistemic "
            f"part. Received: model={model.name!r}"
        )
    inputs = _as_tensors(model, x)
    num_rows = len(tree.flatten(inputs)[0])
    if num_rows == 0:
        raise ValueError("There are no rows to predict. Received: x with 0 rows")
    if not model.built:
        model(tree.map_structure(lambda tensor: tensor[:1], inputs))
    method = resolve_method(model, method, num_rows)
    computation = _Computation.of(model, likelihood, method, inputs)
    return computation.predict(inputs, num_rows, num_samples, seed)


class _Computation:
    """The compiled prediction of one model by one method.

    The model's variables are arguments of it, so that a result can ask for more later
    from the weights that it was made with, whatever the model has become.
    """

    def __init__(self, sampler: Sampler, likelihood: Likelihood):
        self._sampler = sampler
        self._likelihood = likelihood
        if not likelihood.built:
            likelihood.build((None, *sampler.event_shape))
        variables = [*sampler.model.variables, *likelihood.variables]
        self._variables = list({id(v): v for v in variables}.values())
        self._functions: dict[bool, Any] = {}

    @classmethod
    def of(
        cls, model: keras.Model, likelihood: Likelihood, method: str, inputs: Any
    ) -> "_Computation":
        """Returns the model's computation, made at the first call of its kind."""
        shapes = [(tuple(t.shape[1:]), t.dtype.name) for t in tree.flatten(inputs)]
        layers = [id(layer) for layer in sublayers(model)]
        key = (method, id(likelihood), *layers, *shapes)
        # Past Keras' tracking of attributes: this is no part of the model's state.
        known = model.__dict__.setdefault("_predictive_computations", {})
        if key not in known:
            known[key] = cls(Sampler(model, method, inputs), likelihood)
        return known[key]

    def predict(
        self, inputs: Any, num_rows: int, num_samples: int, seed: int
    ) -> Predictive:
        values = [tf.convert_to_tensor(variable) for variable in self._variables]
        seeds = (0, seed)
        size = num_rows * num_samples * (self._sampler.event_shape.num_elements() or 1)
        keep = size <= _MOST_OUTPUTS_KEPT
        summary = self._function(keep)(values, inputs, num_samples, seeds)
        kept = summary.pop("outputs", None)

        def blocks() -> Iterator[Any]:
            if kept is not None:
                yield kept
                return
            rows = max(1, _MOST_OUTPUTS_KEPT * num_rows // size)
            for first in range(0, num_rows, rows):
                part = tree.map_structure(
                    lambda x, first=first: x[first : first + rows], inputs
                )
                yield self._function(True)(values, part, num_samples, seeds)["outputs"]

        return Predictive(self._likelihood, summary, blocks, num_samples, seed)

    def _function(self, keep: bool) -> Any:
        if keep not in self._functions:
            signature = (
                [tf.TensorSpec(v.shape, v.dtype) for v in self._variables],
                self._sampler.input_specs,
                tf.TensorSpec([], tf.int32),
                tf.TensorSpec([2], tf.int32),
            )
            self._functions[keep] = tf.function(
                lambda values, inputs, num_samples, seed: self._compute(
                    values, inputs, num_samples, seed, keep
                ),
                input_signature=signature,
                autograph=False,
            )
        return self._functions[keep]

    def _compute(
        self, values: Any, inputs: Any, num_samples: Any, seed: Any, keep: bool
    ) -> dict[str, tf.Tensor]:
        sampler = self._sampler

        def summarize(outputs: Any, first: Any) -> dict[str, tf.Tensor]:
            summary = summarized(self._likelihood, outputs)
            return {**summary, "outputs": outputs} if keep else summary

        specs = summary_specs(self._likelihood, sampler.event_shape)
        if keep:
            specs["outputs"] = tf.TensorSpec(
                [None, None, *sampler.event_shape], sampler.output_dtype
            )
        with keras.StatelessScope(
            state_mapping=zip(self._variables, values, strict=True)
        ):
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
    example = tf.function(lambda outputs: summarized(likelihood, outputs))
    spec = tf.TensorSpec([None, None, *event_shape], tf.float32)
    return {
        name: tf.TensorSpec(tensor.shape, tensor.dtype)
        for name, tensor in example.get_concrete_function(
            spec
        ).structured_outputs.items()
    }


def _likelihood_of(model: keras.Model, given: Any) -> Likelihood:
    own = getattr(model, "likelihood", None)
    if own is not None and (given is None or given is own):
        return own
    if given is None:
        raise ValueError(
            "A plain Keras model does not know its likelihood p(y | f). Pass "
            "`likelihood=`, e.g. `tfbbb.likelihoods.Categorical()`; a model trained on "
            "the mean squared error of one output has `Normal(scale=0.5**0.5)`. "
            "Received: likelihood=None"
        )
    likelihood: Likelihood = likelihoods.get(given)
    if likelihood.learns:
        raise ValueError(
            "The noise of this likelihood is learned, and it has not been trained with "
            "the model. Give the noise (`Normal(scale=...)`), or train with "
            f"`tfbbb.BayesianModel`. Received: likelihood={given!r}"
        )
    return likelihood


def _as_tensors(model: keras.Model, x: Any) -> Any:
    """Returns the inputs as tensors, floats in the dtype of the model's inputs."""

    def convert(value: Any) -> tf.Tensor:
        if not tf.is_tensor(value):
            value = np.asarray(value)
            if value.dtype == object:
                value = value.astype(str)
        tensor = tf.convert_to_tensor(value)
        return (
            tf.cast(tensor, keras.config.floatx())
            if tensor.dtype.is_floating
            else (tensor)
        )

    graph = graph_of(model)
    if graph is not None and len(graph.inputs) == 1 and not isinstance(x, dict):
        return convert(x)
    if isinstance(x, dict):
        return {name: convert(value) for name, value in x.items()}
    if isinstance(x, list | tuple):
        return type(x)(convert(value) for value in x)
    return convert(x)
