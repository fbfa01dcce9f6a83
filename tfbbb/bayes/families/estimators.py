"""The estimators by the names of `tfbbb.estimators`."""

from typing import Annotated

from pydantic import Field

from tfbbb.bayes.families.arguments import Integer
from tfbbb.bayes.families.posteriors import PosteriorFamily

_DRAWS = "Number of draws in a training step."
NumSamples = Annotated[Integer, Field(ge=1, le=64, description=_DRAWS)]


class EstimatorFamily:
    """Declares an estimator, without TensorFlow.

    The annotations of a subclass are its arguments.
    """

    def can_serve(self, posterior: PosteriorFamily) -> bool:
        """Whether the estimator can train this family."""
        return True


class AutoEstimator(EstimatorFamily):
    """The exact estimator of least variance: the default."""


class LocalEstimator(EstimatorFamily):
    """Draws pre-activations; for weights that are independent normals under q."""

    num_samples: NumSamples = 1

    def can_serve(self, posterior: PosteriorFamily) -> bool:
        return posterior.factorised


class WeightEstimator(EstimatorFamily):
    """Draws one matrix of weights for all rows of a step; for any q."""

    num_samples: NumSamples = 1

    def can_serve(self, posterior: PosteriorFamily) -> bool:
        return posterior.reparameterised


class FlipoutEstimator(EstimatorFamily):
    """Shares one perturbation of the weights, with random signs for each row."""

    num_samples: NumSamples = 1

    def can_serve(self, posterior: PosteriorFamily) -> bool:
        return posterior.symmetric and posterior.factorised


class ScoreFunctionEstimator(EstimatorFamily):
    """Needs no gradient of the draws, but has a much larger variance."""

    num_samples: Annotated[Integer, Field(ge=2, le=64, description=_DRAWS)] = 2

    def can_serve(self, posterior: PosteriorFamily) -> bool:
        return posterior.has_density


ESTIMATORS: dict[str, type[EstimatorFamily]] = {
    "auto": AutoEstimator,
    "local": LocalEstimator,
    "weight": WeightEstimator,
    "flipout": FlipoutEstimator,
    "score_function": ScoreFunctionEstimator,
}
