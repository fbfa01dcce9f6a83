"""Estimators of the ELBO's gradient, resolvable by string name."""

from collections.abc import Sequence

from tfbbb.base.texts import snake_case
from tfbbb.bayes.estimators.auto import Auto
from tfbbb.bayes.estimators.closed_form import ClosedForm
from tfbbb.bayes.estimators.estimator import (
    EstimatedLayer,
    Estimator,
    register,
    registry,
)
from tfbbb.bayes.estimators.flipout import Flipout
from tfbbb.bayes.estimators.local import Local
from tfbbb.bayes.estimators.score_function import ScoreFunction
from tfbbb.bayes.estimators.weight import Weight
from tfbbb.bayes.posteriors import Posterior

names, get, make = registry.names, registry.get, registry.make
serialize, deserialize = registry.serialize, registry.deserialize


def check(
    estimator: Estimator, layer: EstimatedLayer, posteriors: Sequence[Posterior]
) -> None:
    """Raises ValueError if an estimator cannot train the layer with its posteriors."""
    if estimator.serves(layer, posteriors):
        return
    working = [f"'{name}'" for name in names() if get(name).serves(layer, posteriors)]
    if not working:
        raise ValueError(
            "No estimator can train these posteriors in one layer: one has draws "
            "without a gradient, and another has no density for 'score_function'. Use "
            f"other posteriors. Received: posteriors={list(posteriors)} in a "
            f"{type(layer).__name__}"
        )
    of_layer = "this layer with its posteriors"
    if not layer.can_use(estimator):
        of_layer = f"a layer of type {type(layer).__name__}"
    raise ValueError(
        f"The estimator '{snake_case(type(estimator).__name__)}' cannot train "
        f"{of_layer}. Use one of {', '.join(working)}. Received: "
        f"estimator={estimator!r}, posteriors={list(posteriors)} in a layer of type "
        f"{type(layer).__name__}"
    )


__all__ = [
    "Auto",
    "ClosedForm",
    "Estimator",
    "Flipout",
    "Local",
    "ScoreFunction",
    "Weight",
    "check",
    "deserialize",
    "get",
    "make",
    "names",
    "register",
    "registry",
    "serialize",
]
