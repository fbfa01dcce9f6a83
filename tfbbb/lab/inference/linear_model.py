"""A model of one dense layer as a linear model: design, targets and priors."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from tfbbb.base.types import ArrayLike
from tfbbb.bayes.likelihoods import Likelihood, Normal
from tfbbb.bayes.posteriors import (
    FullCovarianceNormal,
    JointNormal,
    MeanFieldNormal,
)
from tfbbb.bayes.posteriors.posterior import Posterior
from tfbbb.bayes.priors import GammaNormal
from tfbbb.bayes.priors import Normal as NormalPrior
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.inference.batches import Batches
from tfbbb.inference.method import as_bayesian_model
from tfbbb.lab.inference.dense_chain import DenseChain, set_normals
from tfbbb.lab.inference.normal_noise import (
    check_normal,
    noise_of,
    set_noise,
)
from tfbbb.layers import DenseVariational
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior
from tfbbb.model.inference_result import InferenceResult
from tfbbb.model.training_rows import TrainingRows

_COVARIANCES = ("full", "factorised")


class PriorOfColumns(NamedTuple):
    """The prior `N(0, variance / lambda)` of the weights of some columns.

    Attributes:
        place: The columns.
        variance: Variance of each weight for lambda = 1.
        gamma: Shape and rate of the gamma prior of lambda; None for lambda = 1.
    """

    place: slice
    variance: float
    gamma: tuple[float, float] | None


class LinearModel:
    """`f = design @ w` with one output, of the rows and the dense layer of a model.

    Args:
        model: A `BayesianModel`, or a Keras model with `likelihood=`.
        x: Inputs, or a dataset.
        y: Targets in raw units; None with a dataset.
        method: Name of the method, for error messages.
        covariance: `"full"` or `"factorised"`: the posterior that the method finds.
        likelihood: Likelihood of a Keras model.
        sample_weight: None, or 1 for each row.
        batch_size: Rows at a time in which the inputs are read.
        likelihoods: The likelihoods that the method can take.
        precisions: Whether the method takes gamma priors of the weights' precision.

    Attributes:
        design: Features, and a column of ones for the bias, [N, d], float64.
        targets: Classes, or targets in the units of the network's outputs, [N].
        noise: Standard deviation of normal noise in these units; NaN for classes.
        learns_noise: Whether the likelihood learns the noise.
        target_unit: The standard deviation of the targets in the units of the outputs.
        factorised: Whether the posterior is that of independent weights.
        log_units: log |d y / d target| summed over the rows: to subtract from the log
            density of the targets.
        priors: The prior of the weights, by columns.
        likelihood: The likelihood, adapted to the targets.

    Raises:
        ValueError: The model has another architecture, likelihood or prior.
    """

    def __init__(
        self,
        model: keras.Model,
        x: Any,
        y: ArrayLike,
        method: str,
        covariance: str,
        likelihood: str | Mapping[str, Any] | Likelihood | None,
        sample_weight: ArrayLike,
        batch_size: int,
        likelihoods: tuple[type[Likelihood], ...],
        precisions: bool = False,
    ):
        model = as_bayesian_model(model, likelihood)
        chain = DenseChain(model, method)
        _check(method, covariance, model.likelihood, chain.layers[0], likelihoods)
        batches = Batches(x, y, sample_weight, batch_size)
        features, targets = chain.rows(batches)
        self.factorised = covariance == "factorised"
        self._model = with_posterior(model, self._posterior(features.shape[1], chain))
        with self._model.training_on(TrainingRows(batches.targets, batches.size)):
            self.likelihood = self._model.likelihood
            targets = self.likelihood.check_targets(targets)
        self.targets = np.asarray(targets, np.float64).reshape(-1)
        self.noise, self.learns_noise = float("nan"), False
        self.target_unit, self.log_units = 1.0, 0.0
        if isinstance(self.likelihood, Normal):
            shift = float(self.likelihood.target_shift.numpy()[0])
            scale = float(self.likelihood.target_scale.numpy()[0])
            self.noise = float(noise_of(self.likelihood)[0])
            self.learns_noise = self.likelihood.scale is None
            if self.likelihood.standardize:
                self.targets = (self.targets - shift) / scale
                self.log_units = len(self.targets) * float(np.log(scale))
            else:
                self.target_unit = scale
                self.noise *= scale
        layer = self._layer
        if layer.use_bias:
            features = np.concatenate([features, np.ones_like(features[:, :1])], 1)
        self.design = features
        self.priors = []
        first = 0
        for weight in layer.variational_weights:
            place = slice(first, first + weight.size)
            self.priors.append(_prior(weight, place, method, precisions))
            first += weight.size

    def _posterior(self, size: int, chain: DenseChain) -> Posterior:
        """Returns the family that can store the posterior."""
        if self.factorised:
            return MeanFieldNormal()
        if chain.layers[0].use_bias:
            return JointNormal(size + 1)
        return FullCovarianceNormal()

    @property
    def _layer(self) -> DenseVariational:
        layer: DenseVariational = self._model.variational_layers[0]
        return layer

    @property
    def prior_variances(self) -> np.ndarray:
        """Var[w] under the prior for lambda = 1, [d]."""
        variances = np.empty(self.design.shape[1])
        for prior in self.priors:
            variances[prior.place] = prior.variance
        return variances

    def set_noise(self, noise: float) -> None:
        """Sets the learned noise, in the units of the network's outputs."""
        assert isinstance(self.likelihood, Normal)
        set_noise(self.likelihood, np.array([noise / self.target_unit]))

    def model_with(
        self, mean: np.ndarray, covariance: np.ndarray, inference: InferenceResult
    ) -> BayesianModel:
        """Returns a model with the posterior N(mean, covariance).

        Args:
            mean: E[w], [d].
            covariance: Cov[w], [d, d], or Var[w], [d], as `covariance` says.
            inference: What the model says of its inference.
        """
        layer = self._layer
        if self.factorised:
            set_normals(layer, mean[:, None], covariance[:, None])
        else:
            _set_full(layer.variational_weights, mean, covariance)
        self._model.inference = inference
        return self._model


def _check(
    method: str,
    covariance: str,
    likelihood: Likelihood,
    layer: DenseVariational,
    likelihoods: tuple[type[Likelihood], ...],
) -> None:
    if covariance not in _COVARIANCES:
        raise ValueError(
            "`covariance` must be 'full' or 'factorised'. "
            f"Received: covariance={covariance!r}"
        )
    if not isinstance(likelihood, likelihoods):
        names = " or ".join(f"`{cls.__name__}`" for cls in likelihoods)
        raise ValueError(
            f"{method} takes the likelihood {names}; use `fit` or another method of "
            f"`tfbbb.inference`. Received: likelihood={likelihood!r}"
        )
    if isinstance(likelihood, Normal):
        check_normal(likelihood, method)
    if layer.units != 1:
        raise ValueError(
            f"{method} takes a layer of one unit; fit one model for each target. "
            f"Received: '{layer.name}' with {layer.units} units"
        )


def _prior(
    weight: VariationalWeight, place: slice, method: str, precisions: bool
) -> PriorOfColumns:
    prior = weight.prior
    if isinstance(prior, NormalPrior):
        log_scale = prior.log_scale(weight.prior_parameters, weight.fan_in)
        return PriorOfColumns(place, float(np.exp(2.0 * float(log_scale))), None)
    if isinstance(prior, GammaNormal) and precisions:
        return PriorOfColumns(place, 1.0, (prior.shape, prior.rate))
    kinds = "`Normal` or `GammaNormal`" if precisions else "`Normal`"
    raise ValueError(
        f"{method} takes the prior {kinds} of `tfbbb.priors`. "
        f"Received: prior={prior!r} of the {weight.name}"
    )


def _set_full(
    weights: Sequence[VariationalWeight], mean: np.ndarray, covariance: np.ndarray
) -> None:
    """Sets the variables of a normal over a kernel, or over a kernel and a bias."""
    import tensorflow_probability as tfp

    factor = np.linalg.cholesky(covariance)
    first = 0
    for weight in weights:
        place = slice(first, first + weight.size)
        variables = weight.variables
        variables["mean"].assign(mean[place].reshape(weight.shape))
        if isinstance(weight.posterior, JointNormal):
            variables["factor"].assign(factor[place])
            variables["first"].assign(float(first))
        else:
            scales = np.diag(factor)
            variables["log_scale"].assign(np.log(scales))
            if len(scales) > 1:
                lower = np.tril((factor / scales[:, None])[1:, :-1])
                correlations = tfp.math.fill_triangular_inverse(lower)
                variables["correlations"].assign(correlations)
        first += weight.size
