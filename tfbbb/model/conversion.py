"""From a deterministic Keras model to a Bayesian one, and back."""

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

import keras
import numpy as np
from keras import tree

from tfbbb.base.private_apis import graph_of, output_structure, producer
from tfbbb.base.suggestions import did_you_mean
from tfbbb.base.types import Identifier, Options, Tensor
from tfbbb.bayes import likelihoods
from tfbbb.bayes.kl_schedules import Constant, KLSchedule, RowsPerWeight
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.likelihoods.log_link import LogLink
from tfbbb.bayes.likelihoods.regression import Regression
from tfbbb.bayes.posteriors import Point, Posterior
from tfbbb.bayes.probability_outputs import (
    PROBABILITIES,
    activation_name,
    without_activation,
)
from tfbbb.layers import VariationalLayer
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.closed_form import choose_closed_form
from tfbbb.model.conversion_table import Conversion, describe
from tfbbb.model.converted_layers import (
    TO_DETERMINISTIC,
    TO_VARIATIONAL,
    Where,
    reasons_to_stay,
)
from tfbbb.model.layer_posterior import variational_layers, variational_weights
from tfbbb.model.losses import ModelWithHeads
from tfbbb.model.network_copy import (
    check_model,
    cloned,
    copy_weights,
    has_new_prior,
    plain_config,
)
from tfbbb.prediction.posterior_predictive import likelihoods_in_order

# Activations of positive numbers that are no exponential.
_POSITIVE = {"relu", "relu6", "sigmoid", "softmax", "softplus"}
Likelihoods: TypeAlias = (
    "Identifier | Likelihood | Sequence[Identifier] | Mapping[str, Identifier] | None"
)
# The options of the variational layers.
_OPTIONS = (
    *("posterior", "prior", "bias_posterior", "bias_prior"),
    *("estimator", "kl_weight", "members", "seed"),
)


def convert(
    model: keras.Model,
    *,
    where: Where = "all",
    likelihood: Likelihoods = None,
    **options: Any,
) -> keras.Model:
    """Returns a Bayesian twin of a deterministic Keras model, trained or not.

    Layers with a variational counterpart in `tfbbb.layers` are replaced by it, and the
    posterior means start at the weights `w` of the layer; all other layers are copied
    with their weights. Regularizers of replaced layers are dropped: the prior replaces
    them. LoRA weights are merged into the kernel. `print(twin.conversion)` shows what
    became of each layer.

    With a likelihood, the twin trains at the temperature of
    `tfbbb.kl_schedules.RowsPerWeight`, `0.3 N / P` of N rows and P weights from 0.03 to
    1, unless `compile` gets a `kl_schedule`. At temperature 1 the prior would pull a
    large trained network back; with `where="adapters"` it holds the frozen network
    where it was, and the temperature is 1.

    With `where="last"`, `likelihood="normal"` and a last `Dense` layer without an
    activation the loss has a closed form, `estimator="closed_form"`, unless another
    estimator is given.

    Example:

    >>> import keras, tfbbb
    >>> network = keras.Sequential([
    ...     keras.Input((3,)),
    ...     keras.layers.Dense(8, "relu"),
    ...     keras.layers.Dense(1, name="last"),
    ... ])
    >>> model = tfbbb.convert(network, likelihood="normal")
    >>> model.compile("adam")
    >>> half = tfbbb.convert(network, where="last", kl_weight=1 / 80)
    >>> [layer.posterior for layer in half.conversion.layers]
    [False, True]

    Args:
        model: A functional or sequential model with weights; nested ones and the layers
            of `TimeDistributed` and `Bidirectional` are converted too, but not those of
            `SpectralNormalization`, whose kernels must be numbers. Frozen layers stay.
        where: The layers to convert: `"all"` that have a counterpart; `"last"`, the
            last ones before the outputs; `"adapters"`, those of `tfbbb.adapters.add`
            and the last ones; a list of names, of nested models and wrappers too; or a
            function of a layer that returns whether to convert it.
        likelihood: p(y | outputs), by name or as a `tfbbb.likelihoods.Likelihood`: the
            result is then a `tfbbb.BayesianModel`. The outputs of the network are the
            mean in the units of the targets (`Normal(standardize=False)`, unless the
            likelihood was adapted to targets before), its logarithm or logit where the
            likelihood takes that (`poisson`, `gamma`, `beta`; `log_normal` takes the
            logarithm of the median), or logits of classes: a last softmax, sigmoid or
            exponential is removed.
            Without a likelihood, the result is a plain Keras model of the same class,
            which needs `kl_weight=T/N` to train. So does a network with several
            outputs, which takes one likelihood for each, in the structure of the
            outputs or in a dictionary by name: their last activations are removed, and
            `compile` of the twin takes likelihoods as losses.
        **options: For the variational layers: `posterior`, `prior`, `bias_posterior`,
            `bias_prior`, `estimator`, `kl_weight`, `members`, `seed`. With several
            members, the first starts at the weights, the others as new layers do, and
            a trained network draws a warning.

    Returns:
        A new model, which shares nothing with the old one and is not compiled. Its
        attribute `conversion` says what became of each layer; a
        `BayesianModel` saves it.

    Raises:
        ValueError: The model is subclassed or not built, a name is no layer's, a layer
            has no counterpart, is quantized, shares a weight with another or cannot be
            copied, no layer is left to convert, the outputs are means where the
            likelihood takes their logarithm, a posterior cannot start at a mean, or an
            option is unknown.
    """
    check_model(model)
    _check_options(options)
    trained = _likelihoods(model, likelihood)
    reasons = reasons_to_stay(model, where)
    options = dict(options)
    members = options.pop("members", None)
    _warn_of_new_members(model, members)

    def counterpart(layer: keras.Layer) -> keras.Layer | None:
        if reasons.get(id(layer), "inside a layer"):
            return None
        # `from_config` would wrap the errors of the constructor in others.
        return TO_VARIATIONAL[type(layer)](**{**plain_config(layer), **options})

    twin = cloned(model, counterpart)
    weights = variational_weights(twin)
    if not weights:
        kept = {layer.name: reasons.get(id(layer), "") for layer in model.layers}
        raise ValueError(
            "The model has no layer with a variational counterpart that may be "
            f"converted. Received: model={model.name!r} with layers {kept}"
        )
    copy_weights(model, twin)
    if where == "last" and "estimator" not in options and len(trained) == 1:
        (one,) = trained
        if one is not None:
            choose_closed_form(twin, variational_layers(twin), one)
    rows = tuple(describe(model, twin, reasons))
    removed: tuple[str, ...] = ()
    if likelihood is not None:
        graph = graph_of(twin)
        assert graph is not None
        _check_outputs(graph, trained)
        linear = [
            without_activation(output, _activations_to_remove(one))
            for output, one in zip(graph.outputs, trained, strict=True)
        ]
        flat = [output for output, _ in linear]
        if len(flat) > 1:
            flat = list(map(_with_name_of, flat, graph.outputs))
        outputs = tree.pack_sequence_as(graph.output, flat)
        removed = tuple(activation for _, activation in linear if activation)
        if len(linear) == 1:
            are_points = all(isinstance(w.posterior, Point) for w in weights)
            kl_schedule: KLSchedule = Constant()
            if not ("kl_weight" in options or are_points or where == "adapters"):
                kl_schedule = RowsPerWeight(sum(weight.size for weight in weights))
            bayesian = BayesianModel(
                graph.input,
                outputs,
                name=model.name,
                likelihood=trained[0],
                members=members,
                kl_schedule=kl_schedule,
            )
            bayesian.conversion = Conversion(
                rows, kl_schedule, removed, len(bayesian.members)
            )
            return bayesian
        twin = ModelWithHeads(graph.input, outputs, name=model.name)
    for layer in variational_layers(twin):
        if members is not None:
            layer.set_members(members)
    twin.conversion = Conversion(rows, removed=removed, members=members or 1)
    return twin


def _warn_of_new_members(model: keras.Model, members: int | None) -> None:
    optimizer = getattr(model, "optimizer", None)
    if (members or 1) > 1 and optimizer is not None and optimizer.iterations > 0:
        warnings.warn(
            "The first member of the twin starts at the weights of the trained "
            "network, the others as new layers do: train the twin for as many epochs "
            "as a new network, or leave `members` out. "
            f"Received: members={members}",
            stacklevel=3,
        )


def _likelihoods(model: keras.Model, given: Likelihoods) -> list[Likelihood | None]:
    """Returns one likelihood for each output of the network, in order."""
    graph = graph_of(model)
    assert graph is not None
    if given is None:
        return [None] * len(graph.outputs)
    each = likelihoods_in_order(given, output_structure(graph))
    if each is None:
        number = len(given) if isinstance(given, list | tuple | dict) else 1
        names = [producer(output).name for output in graph.outputs]
        raise ValueError(
            "Each output of the network has a likelihood. With several outputs, pass "
            "the likelihoods in the structure of the outputs or in a dictionary by "
            "name, and `kl_weight=T/N` for N training rows and a temperature T such as "
            "0.1, and compile the twin with the same likelihoods as losses. "
            f"Received: {number} for {len(names)} outputs {names}"
        )
    return [None if one is None else _of_a_trained_network(one) for one in each]


def _with_name_of(output: Tensor, replaced: Tensor) -> Tensor:
    """Returns an output by the name of another, by which Keras finds its loss."""
    name = producer(replaced).name
    if producer(output).name == name:
        return output
    return keras.layers.Identity(name=name)(output)


def _check_outputs(graph: keras.Model, given: Sequence[Likelihood | None]) -> None:
    for output, likelihood in zip(graph.outputs, given, strict=True):
        if not isinstance(likelihood, LogLink):
            continue
        last = activation_name(producer(output))
        if last in _POSITIVE:
            name = type(likelihood).__name__
            raise ValueError(
                f"{name} takes the {likelihood.location_name}, and the outputs of the "
                "network are positive numbers. End the network in an exponential, by "
                "the activation of its last layer or `keras.ops.exp`, which is "
                f"removed. Received: likelihood={name}, outputs of {last!r}"
            )


def _activations_to_remove(likelihood: Likelihood | None) -> Collection[str]:
    """Returns the last activations that a likelihood computes itself."""
    if isinstance(likelihood, LogLink):
        return ("exponential",)
    if isinstance(likelihood, likelihoods.Beta):
        takes_logits = (likelihood.low, likelihood.high) == (0.0, 1.0)
    else:
        takes_logits = likelihood is not None and likelihood.task == "classification"
    return PROBABILITIES if takes_logits else ()


def to_deterministic(model: keras.Model) -> keras.Model:
    """Returns the deterministic Keras model whose weights are the posterior means.

    Its outputs are those that `convert` takes: locations in the units of the targets,
    or in those of the likelihood's link, by a last `Rescaling` where the model was
    trained on standardised targets; logits of classes.

    Example:

    >>> import keras, tfbbb
    >>> network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    >>> same = tfbbb.to_deterministic(tfbbb.convert(network, kl_weight=1 / 80))
    >>> type(same.layers[0]).__name__
    'Dense'

    Args:
        model: A functional or sequential model, or a `tfbbb.BayesianModel`, whose
            network is converted.

    Raises:
        ValueError: The model is subclassed, not built, or an ensemble.
    """
    check_model(model)
    for layer in variational_layers(model):
        if layer.members > 1:
            raise ValueError(
                "An ensemble has no single posterior mean; take one member, "
                f"`model.members[0]`. Received: {layer.members} members"
            )
    if not variational_layers(model):
        raise ValueError(
            "The model has no variational layer of `tfbbb.layers`, so there is no "
            f"posterior to take the mean of. Received: model={model.name!r}"
        )
    if isinstance(model, BayesianModel):
        outputs = _in_units_of_targets(model.output, model.likelihood)
        model = keras.Model(model.input, outputs, name=model.name)

    def counterpart(layer: keras.Layer) -> keras.Layer | None:
        new = TO_DETERMINISTIC.get(type(layer))
        return None if new is None else new.from_config(plain_config(layer))

    twin = cloned(model, counterpart)
    copy_weights(model, twin)
    return twin


def _in_units_of_targets(output: Tensor, likelihood: Likelihood) -> Tensor:
    if not isinstance(likelihood, Regression):
        return output
    scale, offset = likelihood.units_of_outputs()
    if np.all(scale == 1.0) and np.all(offset == 0.0):
        return output
    return keras.layers.Rescaling(scale.tolist(), offset.tolist())(output)


def with_posterior(
    model: BayesianModel,
    posterior: Identifier | Posterior,
    bias_posterior: Identifier | Posterior | None = None,
    *,
    members: int | None = None,
    same_start: bool = True,
    layer_options: Callable[[VariationalLayer], Mapping[str, Any]] | None = None,
    **options: Any,
) -> BayesianModel:
    """Returns a new model of the same network, priors and likelihood with other q(w).

    The new posteriors start at the means of the model's. Posteriors of the same kind
    keep their spread, others have that of a new layer. Priors and likelihood keep their
    values, deterministic layers their weights, and the model its number of rows.
    """
    _check_options(options)
    if len(model.members) > 1:
        raise ValueError(
            "Only a model with one posterior can get other posteriors; take one "
            f"member, `model.members[0]`. Received: {len(model.members)} members"
        )
    changed = {
        "estimator": "auto",
        **options,
        "posterior": posterior,
        "bias_posterior": posterior if bias_posterior is None else bias_posterior,
    }

    def counterpart(layer: keras.Layer) -> keras.Layer | None:
        if not isinstance(layer, VariationalLayer):
            return None
        own = {} if layer_options is None else layer_options(layer)
        return type(layer).from_config({**layer.get_config(), **changed, **own})

    network = keras.Model(model.input, model.output, name=model.name)
    twin = cloned(network, counterpart)
    copy_weights(network, twin)
    new = BayesianModel(
        twin.input,
        twin.output,
        name=model.name,
        likelihood=model.likelihood,
        members=members,
    )
    _copy_trained_state(model, new, same_start)
    return new


def _copy_trained_state(
    model: BayesianModel, new: BayesianModel, same_start: bool
) -> None:
    """Copies priors, and what is of the rows, to a model of the same network."""
    for old, weight in zip(
        variational_weights(model), variational_weights(new), strict=True
    ):
        if not has_new_prior(weight, old):
            for name, variable in weight.prior_variables.items():
                value = old.prior_variables[name].numpy()
                variable.assign(np.broadcast_to(value, variable.shape))
        if weight.members > 1 and same_start:
            for variable in weight.variables.values():
                values = variable.numpy()
                variable.assign(np.broadcast_to(values[:1], values.shape))
    for layer, twin in zip(
        variational_layers(model), variational_layers(new), strict=True
    ):
        twin.kl_weight.assign(layer.kl_weight)
    if model.num_rows is not None:
        new.num_rows = model.num_rows
    new.compare_rows_as(model)


def _of_a_trained_network(given: Identifier | Likelihood) -> Likelihood:
    """Returns the likelihood for outputs in the units of the targets."""
    likelihood = likelihoods.get(given)
    if likelihood.built or not getattr(likelihood, "standardize", False):
        return likelihood
    config = {**likelihood.get_config(), "standardize": False}
    return type(likelihood).from_config(config)


def _check_options(options: Options) -> None:
    for name in options:
        if name not in _OPTIONS:
            raise ValueError(
                f"Unknown option.{did_you_mean(name, _OPTIONS)} Variational layers "
                f"have {list(_OPTIONS)}; the other arguments are those of the layers "
                f"they replace. Received: {name!r}"
            )
