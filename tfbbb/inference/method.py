"""The base class of inference methods, and what they require of a model."""

from collections.abc import Callable
from typing import Any

import keras

from tfbbb.base.private_apis import sublayers
from tfbbb.base.strategy import Strategy
from tfbbb.base.types import Config, Identifier
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.priors import EmpiricalNormal
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import convert
from tfbbb.model.inference_result import InferenceResult
from tfbbb.prediction.dropout import is_dropout


class InferenceMethod(Strategy):
    """A way to a posterior: `fit` sets q and returns a new `BayesianModel`.

    `fit(model, x, y, *, likelihood=None, ...)` takes a `BayesianModel`, or a Keras
    model with `likelihood=`; `x` are inputs, or a dataset, as `BayesianModel.fit` takes
    them; `y` are targets in raw units. The returned model predicts, saves, exports and
    is served like any other, and has `log_evidence` and `diagnostics`. A subclass keeps
    each argument of its constructor, and nothing else, as an attribute of the same
    name, so that methods of equal arguments are equal.
    """

    linearised = False
    fit: Callable[..., BayesianModel]

    def get_config(self) -> Config:
        return dict(vars(self))

    def result(
        self, log_evidence: float | None = None, **diagnostics: Any
    ) -> InferenceResult:
        """Returns what the model says of this inference."""
        return InferenceResult(repr(self), log_evidence, diagnostics, self.linearised)


def as_bayesian_model(
    model: keras.Model,
    likelihood: Identifier | Likelihood | None = None,
    **options: Any,
) -> BayesianModel:
    """Returns the model, or the Bayesian twin of a Keras model, with points as q."""
    if isinstance(model, BayesianModel):
        if likelihood is not None or options:
            raise ValueError(
                "A BayesianModel has a likelihood and priors of its own; leave "
                f"`likelihood`, {sorted(options)} out, or give a Keras model. "
                f"Received: likelihood={likelihood!r}"
            )
        return model
    if likelihood is None:
        raise ValueError(
            "A Keras model needs the likelihood of its outputs, such as "
            '`likelihood="normal"` or `"categorical"`. '
            f"Received: model of type {type(model).__name__}, likelihood=None"
        )
    point = {"posterior": "point", "bias_posterior": "point", **options}
    return convert(model, likelihood=likelihood, **point)


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
