"""Builds the network of a spec for the columns of a table."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import keras

from tfbbb.bayes import likelihoods
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.priors import FromPosterior
from tfbbb.layers import DenseVariational, Exposure
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.tables import Schema, preprocessing
from tfbbb.training.spec import LayerSpec, ModelSpec, SpecError
from tfbbb.training.spec.families import (
    COUNTS,
    DEFAULT_LIKELIHOODS,
    TIMES,
    LikelihoodPart,
)
from tfbbb.training.spec.layers import BatchNormalizationLayer, DenseLayer, DropoutLayer

# More than the number of weight tensors of a network, each of which has a seed.
_SEEDS_APART = 1000


def make_network(
    schema: Schema,
    spec: ModelSpec,
    *,
    seed: int | None = None,
    prior: FromPosterior | None = None,
) -> BayesianModel:
    """Builds the untrained network of a spec: `hidden_1` and so on, and `output`."""
    inputs, features = preprocessing(
        schema, piecewise_linear=spec.numeric_encoding == "piecewise_linear"
    )
    likelihood = make_likelihood(spec.likelihood, schema)
    num_outputs = likelihood.num_outputs(len(schema.classes or schema.target_columns))
    num_outputs -= likelihood.exposure
    layers = spec.complete_layers(num_outputs)
    names = [f"hidden_{number}" for number in range(1, len(layers))] + ["output"]
    seeds = count(0 if seed is None else _SEEDS_APART * seed)
    try:
        spec.check_size(features.shape[-1], num_outputs)
        for name, layer in zip(names, layers, strict=True):
            options = {"prior": prior, "members": spec.members or 1}
            made = _layer(layer, name, None if seed is None else seeds, options)
            features = made(features)
        if schema.exposure is not None:
            features = Exposure()([features, inputs[schema.exposure]])
        return BayesianModel(inputs, features, likelihood=likelihood)
    except ValueError as error:
        raise SpecError(f"The network does not fit this table: {error}") from None


def make_likelihood(part: LikelihoodPart | None, schema: Schema) -> Likelihood:
    """Creates the likelihood of a spec, or the default likelihood."""
    part = part or DEFAULT_LIKELIHOODS[schema.task]
    if part is DEFAULT_LIKELIHOODS["regression"]:
        if schema.exposure is not None:
            part = COUNTS
        elif schema.event is not None:
            part = TIMES
    if part.family.task != schema.task:
        raise SpecError(
            f"The likelihood '{part.name}' is for a {part.family.task}, but the task "
            f"of the target {schema.target.name!r} is {schema.task}."
        )
    options = part.options()
    if schema.exposure is not None:
        options["exposure"] = True
    if schema.event is not None:
        options["censored"] = True
    num_classes = len(schema.classes)
    if part.family.binary and num_classes != 2:
        raise SpecError(
            f"The likelihood '{part.name}' has two classes, but the target "
            f"{schema.target.name!r} has {num_classes}; use 'categorical'."
        )
    return likelihoods.make(part.name, **options)


def _layer(
    spec: LayerSpec, name: str, seeds: Iterator[int] | None, options: dict[str, Any]
) -> keras.Layer:
    if isinstance(spec, DenseLayer):
        return _dense(spec, name, seeds, **options)
    if isinstance(spec, DropoutLayer):
        seed = None if seeds is None else next(seeds)
        return keras.layers.Dropout(spec.rate, seed=seed, name=name)
    given = spec.model_dump(exclude={"type"})
    if isinstance(spec, BatchNormalizationLayer):
        return keras.layers.BatchNormalization(name=name, **given)
    return keras.layers.LayerNormalization(name=name, **given)


def _made(part: Any) -> Any:
    return None if part.name == "none" else part.make()


def _dense(
    spec: DenseLayer,
    name: str,
    seeds: Iterator[int] | None,
    prior: FromPosterior | None,
    members: int,
) -> DenseVariational:
    return DenseVariational(
        spec.units,
        spec.activation,
        use_bias=spec.use_bias,
        kernel_initializer=keras.initializers.GlorotUniform(
            None if seeds is None else next(seeds)
        ),
        posterior=_made(spec.posterior),
        prior=prior or _made(spec.prior),
        bias_posterior=_made(spec.bias_posterior),
        bias_prior=prior or _made(spec.bias_prior),
        estimator=_made(spec.estimator),
        members=members,
        seed=None if seeds is None else next(seeds),
        name=name,
    )
