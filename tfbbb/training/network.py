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
from tfbbb.training.spec import ModelSpec, SpecError
from tfbbb.training.spec.families import (
    COUNTS,
    DEFAULT_LIKELIHOODS,
    TIMES,
    LikelihoodPart,
)

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
    layers = [
        (units, spec.activation, f"hidden_{number}")
        for number, units in enumerate(spec.hidden_units or (), 1)
    ]
    seeds = None if seed is None else count(_SEEDS_APART * seed)
    try:
        spec.check_size(features.shape[-1], num_outputs)
        for layer in [*layers, (num_outputs, "linear", "output")]:
            features = _dense(spec, *layer, seeds, prior)(features)
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


def _made(part: Any) -> Any:
    return None if part.name == "none" else part.make()


def _dense(
    spec: ModelSpec,
    units: int,
    activation: str,
    name: str,
    seeds: Iterator[int] | None,
    prior: FromPosterior | None,
) -> DenseVariational:
    return DenseVariational(
        units,
        activation,
        kernel_initializer=keras.initializers.GlorotUniform(
            None if seeds is None else next(seeds)
        ),
        posterior=_made(spec.posterior),
        prior=prior or _made(spec.prior),
        bias_posterior=_made(spec.bias_posterior),
        bias_prior=prior or _made(spec.bias_prior),
        members=spec.members or 1,
        seed=None if seeds is None else next(seeds),
        name=name,
    )
