"""A model of one dense layer as a linear model, and the methods for such models."""

from typing import ClassVar, NamedTuple

import keras
import numpy as np

from tfbbb.base.numbers import choice
from tfbbb.base.types import ArrayLike, Identifier, Structure
from tfbbb.bayes.likelihoods import Likelihood, Normal
from tfbbb.bayes.posteriors import FullCovarianceNormal, JointNormal, MeanFieldNormal
from tfbbb.bayes.posteriors.posterior import Posterior
from tfbbb.bayes.priors import GammaNormal
from tfbbb.bayes.priors import Normal as NormalPrior
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.inference.batches import Batches
from tfbbb.inference.curvature_blocks import set_scale_tril
from tfbbb.inference.method import InferenceMethod, as_bayesian_model
from tfbbb.inference.normal_noise import check_normal, noise_of, set_noise
from tfbbb.lab.inference.dense_chain import DenseChain, set_normals
from tfbbb.layers import DenseVariational
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior
from tfbbb.model.inference_result import InferenceResult
from tfbbb.model.training_rows import TrainingRows


class PriorOfColumns(NamedTuple):
    """The prior `N(0, variance / lambda)` of the weights of some columns."""

    place: slice
    variance: float
    gamma: tuple[float, float] | None


class LinearModel:
    """`f = design @ w` with one output, of the rows and the dense layer of a model.

    `design` are features, and a column of ones for the bias, [N, d], `targets` classes
    or targets in the units of the network's outputs, [N], `noise` the standard
    deviation of normal noise in these units, `target_unit` that of the targets, and
    `log_units` the sum of log |d y / d target| over the rows, to subtract from the log
    density of the targets.
    """

    def __init__(
        self,
        model: BayesianModel,
        batches: Batches,
        method: str,
        covariance: str,
        likelihoods: tuple[type[Likelihood], ...],
        precisions: bool = False,
    ):
        chain = DenseChain(model, method)
        _check(method, covariance, model.likelihood, chain.layers[0], likelihoods)
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
        """Returns a model with the posterior N(mean, covariance)."""
        layer = self._layer
        if self.factorised:
            set_normals(layer, mean[:, None], covariance[:, None])
        else:
            weights = layer.variational_weights
            for weight, prior in zip(weights, self.priors, strict=True):
                own = mean[prior.place].reshape(weight.shape)
                weight.variables["mean"].assign(own)
            set_scale_tril(weights, np.linalg.cholesky(covariance))
        self._model.inference = inference
        return self._model


class LinearMethod(InferenceMethod):
    """Finds the posterior of a linear model. A subclass implements `_posterior`."""

    covariance: str = "full"
    # The name for error messages, and what the method takes.
    _name: ClassVar[str]
    _likelihoods: ClassVar[tuple[type[Likelihood], ...]]
    _takes_precisions: ClassVar[bool] = False

    def fit(
        self,
        model: keras.Model,
        x: Structure,
        y: ArrayLike = None,
        *,
        likelihood: Identifier | Likelihood | None = None,
        sample_weight: ArrayLike = None,
        batch_size: int = 256,
        verbose: int = 0,
    ) -> BayesianModel:
        """Returns a model with the posterior of its dense layer."""
        problem = LinearModel(
            as_bayesian_model(model, likelihood),
            Batches(x, y, sample_weight, batch_size),
            self._name,
            self.covariance,
            self._likelihoods,
            self._takes_precisions,
        )
        return self._posterior(problem, verbose)

    def _posterior(self, problem: LinearModel, verbose: int) -> BayesianModel:
        raise NotImplementedError


def _check(
    method: str,
    covariance: str,
    likelihood: Likelihood,
    layer: DenseVariational,
    likelihoods: tuple[type[Likelihood], ...],
) -> None:
    choice("covariance", covariance, ("full", "factorised"))
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
