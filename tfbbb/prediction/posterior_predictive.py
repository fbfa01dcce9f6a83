"""The posterior predictive of any Keras model with variational layers."""

from collections.abc import Mapping
from typing import Any, TypedDict

import keras
import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base.numbers import choice, int32, positive_number
from tfbbb.base.private_apis import graph_of, is_recorded, producer
from tfbbb.base.types import ArrayLike, Config, Tensor
from tfbbb.bayes import likelihoods
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.probability_outputs import check_logits
from tfbbb.prediction.dropout import check_dropout, is_dropout
from tfbbb.prediction.inputs import in_order, input_tensors
from tfbbb.prediction.plan import METHODS, own_method, plan_for
from tfbbb.prediction.program import Program
from tfbbb.prediction.recalibration.recalibration import IDENTITY
from tfbbb.prediction.structure import Structure, structure_of_outputs


class PredictiveOptions(TypedDict, total=False):
    """The options of a prediction that are seldom needed: see `predictive`."""

    include_dropout: bool
    max_memory_mb: float


def predictive(
    model: keras.Model,
    x: ArrayLike,
    *,
    likelihood: str | Mapping[str, Any] | Likelihood | None = None,
    num_samples: int = 100,
    method: str = "auto",
    seed: int = 0,
    include_dropout: bool = False,
    max_memory_mb: float = 512,
) -> Any:
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
        model: A built Keras model: functional, sequential or subclassed. Layers that
            are not variational run in inference mode.
        x: Inputs of the rows: an array, or a list or dictionary of arrays where the
            model takes several. The model finds the values of a dictionary by name and
            ignores names that it does not know. Or batches of them, with or without
            targets and weights, as `fit` takes them: a `tf.data.Dataset`, a
            `keras.utils.PyDataset` or a generator, which are read once, to their end.
        likelihood: p(y | f), as the model was trained: `"categorical"` or a
            `tfbbb.likelihoods.Likelihood`; of a model with several outputs one for
            each, in the structure of the outputs or in a dictionary by name. Not needed
            for a `tfbbb.BayesianModel`.
        num_samples: Number S of draws from the posterior, at least 2. They come
            in pairs of opposite noise, equally many from each member: S is rounded up
            to two whole pairs or more.
        method: `"local"` draws pre-activations in layers where that is exact, with
            noise that is shared by all rows; `"weight"` draws weights; `"linearised"`
            draws weights of the network that is linear in them around their means,
            for which a Laplace approximation is exact (Immer et al. 2021); `"auto"`
            draws what is faster, layer by layer, and is `"linearised"` for a Laplace
            approximation. With a named method, a row's answer does not depend on the
            rows beside it.
            `"local"` and `"auto"` integrate a linear last layer that gives the mean of
            a likelihood with an identity link.
        seed: The same seed gives the same answer, up to the rounding of functions that
            are compiled once predictions are repeated. An integer of 32 bits.
        include_dropout: Whether dropout layers drop too: Monte Carlo dropout (Gal and
            Ghahramani 2016), with one mask per draw for all rows.
        max_memory_mb: Memory for what is drawn and for what flows through the network,
            half for each, in MB (2^20 bytes). Draws that fit into their half are kept
            for the next prediction with the same seed and number; results are computed
            again where they are too many to be kept.

    Returns:
        A `tfbbb.Predictive`; of several outputs, a list or dictionary of them.

    Raises:
        ValueError: For fewer than two samples, no rows, inputs that are not the
            model's, an unknown method, a model without variational layers, a missing
            likelihood, dropout where no pass draws it, or an answer that is not
            finite.
        RuntimeError: Within a `tf.function`.
    """
    if not tf.executing_eagerly():
        raise RuntimeError(
            "A prediction is made of NumPy arrays, so not within a `tf.function`. Call "
            "it outside, or export the model and call a signature of it. "
            f"Received: model={model.name!r}"
        )
    # One sample alone does not tell epistemic from aleatoric variance.
    num_samples = int32("num_samples", num_samples, least=2)
    positive_number("max_memory_mb", max_memory_mb)
    seed = int32("seed", seed)
    choice("method", method, ("auto", *METHODS))
    if include_dropout and method == "linearised":
        raise ValueError(
            "The network that is linear in its weights drops nothing. Draw masks by "
            "`method='local'` or `method='weight'`. "
            f"Received: include_dropout=True, method={method!r}"
        )
    inputs = input_tensors(model, x)
    if not model.built:
        model(tree.map_structure(lambda tensor: tensor[:1], inputs))
    structure = Structure.of(model)
    if method == "auto" and not include_dropout:
        method = own_method(model, structure)
    _check_stochastic(model, structure, include_dropout)
    form, found = match_likelihoods(model, likelihood, inputs)
    _check_outputs(model, structure, found)
    recalibration, extrapolation = IDENTITY, None
    if form is getattr(model, "likelihood", None):
        # Of the model's own likelihood, with which they were fitted.
        recalibration = getattr(model, "recalibration", None) or IDENTITY
        extrapolation = getattr(model, "extrapolation", None)
    compared = None if extrapolation is None else extrapolation.compare(inputs)
    num_beyond = 0 if compared is None else compared[1].shape[1]
    # The other half is for draws that are kept from one call to the next.
    max_floats = max(1, int(max_memory_mb * 2**18))
    num_rows = len(tree.flatten(inputs)[0])
    plan = plan_for(
        structure, method, num_rows, num_samples, max_floats, found, include_dropout
    )
    program = Program.of(
        structure, found, plan, inputs, recalibration, num_beyond=num_beyond
    )
    given = inputs if compared is None else [inputs, compared[1]]
    passes = program.passes(recalibration)
    predictions = passes.predict(given, num_samples, seed, max_floats)
    if structure.output_mask is not None:
        predictions[0].leave_out_masked(structure.output_mask(inputs))
    familiarity = getattr(model, "familiarity", None)
    if familiarity is not None:

        def find() -> np.ndarray:
            found = familiarity(inputs) if compared is None else compared[0]
            return found.numpy()

        for prediction in predictions:
            prediction.compare_rows(find)
    return tree.pack_sequence_as(form, predictions)


def _check_stochastic(
    model: keras.Model, structure: Structure, include_dropout: bool
) -> None:
    """Raises ValueError for a model that draws nothing."""
    if include_dropout:
        check_dropout(model, structure.layers)
    dropout = include_dropout and any(map(is_dropout, structure.layers))
    if not structure.layer_infos and not dropout:
        what = "variational or dropout" if include_dropout else "variational"
        raise ValueError(
            f"The model has no {what} layer, so its prediction has no epistemic part. "
            f"Received: model={model.name!r}"
        )


def _check_outputs(
    model: keras.Model, structure: Structure, likelihoods: list[Likelihood]
) -> None:
    """Raises ValueError if a network gives probabilities where logits are needed."""
    graph = graph_of(model)
    if graph is None or likelihoods == [getattr(model, "likelihood", None)]:
        return
    for index, likelihood in enumerate(likelihoods):
        if likelihood.task == "classification" and index not in structure.logits:
            check_logits(graph.outputs[index])
            structure.logits.add(index)


def match_likelihoods(
    model: keras.Model, given: Any, inputs: Tensor
) -> tuple[Any, list[Likelihood]]:
    """Returns the structure of the model's outputs, and their likelihoods in order."""
    own = getattr(model, "likelihood", None)
    if own is not None and (given is None or given is own):
        return own, [own]
    if given is None:
        raise ValueError(
            "A plain Keras model does not know its likelihood p(y | f). Pass "
            "`likelihood=`, e.g. `tfbbb.likelihoods.Categorical()`; a model trained on "
            "the mean squared error of one output has `Normal(scale=0.5**0.5)`. "
            "Received: likelihood=None"
        )
    form = structure_of_outputs(model, inputs)
    likelihoods = likelihoods_in_order(given, form)
    if likelihoods is None:
        raise ValueError(
            f"The model has {len(tree.flatten(form))} outputs, each of which has a "
            "likelihood: pass them in the structure of its outputs, or in a dictionary "
            f"by their names. Received: likelihood={given!r}, outputs of structure "
            f"{tree.map_structure(lambda x: x.name, form)}"
        )
    return form, [_checked(likelihood) for likelihood in likelihoods]


def likelihoods_in_order(given: Any, form: Any) -> list[Any] | None:
    """Returns one likelihood for each output in order, None if they do not fit."""
    if not tree.is_nested(form) and isinstance(given, list | tuple):
        return list(given) if len(given) == 1 else None
    return in_order(form, given, _name_of_layer)


def _name_of_layer(output: Any) -> str:
    return producer(output).name if is_recorded(output) else ""


def _checked(given: str | Config | Likelihood) -> Likelihood:
    likelihood: Likelihood = likelihoods.get(given)
    if likelihood.learns:
        raise ValueError(
            "The noise of this likelihood is learned, and it has not been trained with "
            "the model. Give the noise (`Normal(scale=...)`), or train with "
            f"`tfbbb.BayesianModel`. Received: likelihood={given!r}"
        )
    return likelihood
