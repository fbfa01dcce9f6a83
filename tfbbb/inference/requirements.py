"""What a model must have, or lack, for an inference method to serve it."""

import keras

from tfbbb.base.private_apis import sublayers
from tfbbb.bayes.priors import EmpiricalNormal
from tfbbb.inference.method import InferenceMethod
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.dropout import is_dropout


def dropping_layers(model: keras.Model) -> list[str]:
    """Returns the names of the layers that drop units in training."""
    found = []
    for layer in sublayers(model):
        rates = [getattr(layer, "rate", 0.0)] if is_dropout(layer) else []
        rates += [
            getattr(layer, name, 0.0)
            for name in ("dropout", "recurrent_dropout", "_dropout")
        ]
        if any(isinstance(rate, float) and rate for rate in rates):
            found.append(layer.name)
    return found


def refuse_dropout(method: InferenceMethod, model: BayesianModel) -> None:
    """Raises ValueError for dropout, which leaves no density of the weights alone."""
    found = dropping_layers(model)
    if found:
        raise ValueError(
            f"{type(method).__name__} needs the posterior density at given weights, "
            "and dropout makes it random. Remove the dropout layers, or use "
            f"`tfbbb.inference.MCDropout`. Received: dropout in {found}"
        )


def batch_normalizations(model: keras.Model) -> list[str]:
    """Returns the names of the layers that normalise by batches; frozen ones do not."""
    return [
        layer.name
        for layer in sublayers(model)
        if isinstance(layer, keras.layers.BatchNormalization) and layer.trainable
    ]


def refuse_batch_normalization(method: InferenceMethod, model: BayesianModel) -> None:
    """Raises ValueError for batch normalisation, which couples the rows of a batch."""
    found = batch_normalizations(model)
    if found:
        raise ValueError(
            f"{type(method).__name__} changes the weights, and the moving averages of "
            "batch normalisation are those of other weights. Use "
            "`keras.layers.LayerNormalization`. "
            f"Received: batch normalisation in {found}"
        )


def require_some_priors(
    method: InferenceMethod, model: BayesianModel, reason: str
) -> None:
    """Raises ValueError for weights without a prior."""
    for layer in model.variational_layers:
        for weight in layer.variational_weights:
            if weight.prior is None:
                raise ValueError(
                    f"{type(method).__name__} {reason}. Give the layer a prior, such "
                    "as `prior='normal'`. "
                    f"Received: prior=None for {weight.name!r} of '{layer.name}'"
                )


def require_priors(method: InferenceMethod, model: BayesianModel) -> None:
    """Raises ValueError for weights whose prior is missing or follows the posterior."""
    require_some_priors(
        method,
        model,
        "samples from the posterior, and without a prior it may not be a distribution",
    )
    for layer in model.variational_layers:
        for weight in layer.variational_weights:
            if isinstance(weight.prior, EmpiricalNormal):
                raise ValueError(
                    f"{type(method).__name__} needs a prior that stays the same, and "
                    "'empirical_normal' follows the posterior. Use 'gamma_normal', "
                    "which integrates over the scale. "
                    f"Received: {weight.prior!r} for {weight.name!r} of '{layer.name}'"
                )
