"""The posterior predictive of any Keras model with variational layers."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb import likelihoods
from tfbbb.layers import VariationalLayer
from tfbbb.layers.sharing import graph_of, sublayers
from tfbbb.likelihoods import Likelihood
from tfbbb.prediction.computation import Computation
from tfbbb.prediction.method import resolve_method
from tfbbb.prediction.result import Predictive


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
        x: Inputs of the rows: an array, or a list or dictionary of arrays where the
            model takes several.
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
        ValueError: For fewer than two samples, no rows, inputs that are not the
            model's, an unknown method, a model without variational layers, a missing
            likelihood, or an answer that is not finite.
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
    num_rows = _num_rows(inputs)
    if not model.built:
        model(tree.map_structure(lambda tensor: tensor[:1], inputs))
    method = resolve_method(model, method, num_rows)
    computation = Computation.of(model, likelihood, method, inputs)
    return computation.predict(inputs, num_rows, num_samples, seed)


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
    if isinstance(x, tf.data.Dataset | keras.utils.PyDataset):
        raise ValueError(
            "A prediction takes arrays, not a dataset; gather its inputs first, or "
            f"predict batch by batch. Received: x of type {type(x).__name__}"
        )

    def convert(value: Any) -> tf.Tensor:
        if not tf.is_tensor(value):
            value = np.asarray(value)
            if value.dtype == object:
                value = value.astype(str)
        tensor = tf.convert_to_tensor(value)
        if tensor.dtype.is_floating:
            tensor = tf.cast(tensor, keras.config.floatx())
        return tensor

    graph = graph_of(model)
    tensors: Any
    if isinstance(x, dict):
        tensors = {name: convert(value) for name, value in x.items()}
    elif isinstance(x, list | tuple) and (graph is None or len(graph.inputs) > 1):
        tensors = type(x)(convert(value) for value in x)
    else:
        tensors = convert(x)
    if graph is not None:
        _check_structure(graph, tensors)
    return tensors


def _check_structure(graph: keras.Model, tensors: Any) -> None:
    given = graph.input if isinstance(graph.input, dict) else tensors
    # Where the names differ, Keras would take the values in the order of the names.
    if isinstance(tensors, dict) and set(tensors) != set(given):
        raise ValueError(
            f"The inputs of the model are {sorted(given)}. "
            f"Received: inputs {sorted(tensors)}"
        )
    number = len(tree.flatten(tensors))
    if number != len(graph.inputs):
        raise ValueError(
            f"The model takes {len(graph.inputs)} inputs. Received: {number}"
        )
    for tensor, reference in zip(tree.flatten(tensors), graph.inputs, strict=True):
        wanted, received = list(reference.shape[1:]), list(tensor.shape[1:])
        # Keras adds or drops a last dimension of size 1.
        allowed = [received, [*received, 1]]
        if received[-1:] == [1]:
            allowed.append(received[:-1])
        if not any(_fits(wanted, shape) for shape in allowed):
            raise ValueError(
                f"The input '{reference.name}' of the model has the shape "
                f"{['rows', *wanted]}. Received: shape={list(tensor.shape)}"
            )


def _fits(wanted: list[int | None], received: list[int]) -> bool:
    return len(wanted) == len(received) and all(
        size in (None, other) for size, other in zip(wanted, received, strict=True)
    )


def _num_rows(inputs: Any) -> int:
    lengths = [len(tensor) for tensor in tree.flatten(inputs)]
    if len(set(lengths)) > 1:
        raise ValueError(
            "Every input of the model needs the same number of rows. "
            f"Received: inputs of {lengths} rows"
        )
    if lengths[0] == 0:
        raise ValueError("There are no rows to predict. Received: x with 0 rows")
    return lengths[0]
