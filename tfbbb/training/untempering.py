"""Takes the temperature out of a posterior, so that it counts each row once."""

import numpy as np

from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.bayes.priors import Normal
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.model.bayesian_model import BayesianModel


def untemper(model: BayesianModel, temperature: float) -> None:
    """Changes a posterior at temperature T into the posterior at temperature 1.

    Training at the temperature T counts each row 1/T times: `q ~ p(w) L(w)^(1/T)`
    with the likelihood L of the rows. So `(q / p)^T` stands for L, and

        q'(w) ~ p(w) (q(w) / p(w))^T

    counts each row once. For a normal q of mean m and precision l, and a normal prior
    of mean 0 and precision l0, q' is normal with

        precision l0 + T (l - l0),   precision * mean = T l m.
    """
    weights = _weights(model)
    for weight in weights:
        if not _is_normal(weight):
            raise ValueError(
                "Only normal posteriors with normal priors can be taken to "
                "temperature 1. Received: "
                f"posterior={weight.posterior!r}, prior={weight.prior!r}"
            )
    for weight in weights:
        _untemper_weight(weight, temperature)


def can_untemper(model: BayesianModel) -> bool:
    """Whether all posteriors and priors of a model are normal, as `untemper` needs."""
    return all(map(_is_normal, _weights(model)))


def _weights(model: BayesianModel) -> list[VariationalWeight]:
    return [
        weight
        for layer in model.variational_layers
        for weight in layer.variational_weights
    ]


def _is_normal(weight: VariationalWeight) -> bool:
    return isinstance(weight.posterior, MeanFieldNormal) and isinstance(
        weight.prior, Normal
    )


def _untemper_weight(weight: VariationalWeight, temperature: float) -> None:
    prior = weight.prior
    assert isinstance(prior, Normal)
    # In float64: a precision may exceed the prior's by many orders.
    log_scale = np.asarray(
        prior.log_scale(weight.prior_parameters, weight.fan_in), np.float64
    )
    mean = np.asarray(weight.mean, np.float64)
    log_scale = log_scale.reshape(
        log_scale.shape + (1,) * (mean.ndim - log_scale.ndim) * (log_scale.ndim > 0)
    )
    of_prior = np.exp(-2.0 * log_scale)
    of_posterior = 1.0 / np.asarray(weight.variance, np.float64)
    precision = of_prior + temperature * (of_posterior - of_prior)
    weight.variables["mean"].assign(temperature * of_posterior * mean / precision)
    weight.variables["log_scale"].assign(-0.5 * np.log(precision))
