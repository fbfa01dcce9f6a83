"""The base class of inference methods."""

from collections.abc import Callable
from typing import Any

import keras

from tfbbb.base.strategy import Strategy
from tfbbb.base.types import Config, Identifier
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import convert
from tfbbb.model.inference_result import InferenceResult


class InferenceMethod(Strategy):
    """A way to a posterior: `fit` sets q and returns a `BayesianModel`.

    The model that `fit` is given stays as it is. The returned model predicts, saves,
    exports and is served like any other, and has `log_evidence` and `diagnostics`.

    A subclass keeps each argument of its constructor, and nothing else, as an attribute
    of the same name, so that methods of equal arguments are equal. It implements `fit`.

    Attributes:
        linearised: Whether the posterior is that of the linearised network: see
            `InferenceResult`.
        fit: `fit(model, x, y, *, likelihood=None, ...)` returns a new `BayesianModel`.
            `model` is a `BayesianModel`, or a Keras model with `likelihood=`; `x` are
            inputs, or a dataset, as `BayesianModel.fit` takes them; `y` are targets in
            raw units. Each method has options of its own.
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
