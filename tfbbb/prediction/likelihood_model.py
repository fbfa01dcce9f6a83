"""What recalibration and export need to know of a `BayesianModel`."""

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import keras

from tfbbb.base.types import ArrayLike, Structure, Tensor
from tfbbb.bayes.likelihoods.likelihood import Likelihood
from tfbbb.layers.variational import VariationalLayer

if TYPE_CHECKING:
    from tfbbb.prediction.extrapolation import Extrapolation
    from tfbbb.prediction.familiarity import Familiarity
    from tfbbb.prediction.recalibration.recalibration import Recalibration
    from tfbbb.prediction.result import Predictive


@runtime_checkable
class LikelihoodModel(Protocol):
    """A Keras model with a likelihood: `tfbbb.BayesianModel` is one.

    `BayesianModel` calls the functions that take a `LikelihoodModel`, so that their
    modules cannot import `BayesianModel`.
    """

    likelihood: Likelihood
    recalibration: "Recalibration | None"
    familiarity: "Familiarity | None"
    extrapolation: "Extrapolation | None"
    variables: list[keras.Variable]
    inputs: list[Tensor]
    input: Structure

    @property
    def variational_layers(self) -> list[VariationalLayer]: ...

    @property
    def num_rows(self) -> float | None: ...

    def predictive(self, x: ArrayLike, *args: Any, **options: Any) -> "Predictive":
        """Computes the posterior predictive distribution p(y | x, data)."""
