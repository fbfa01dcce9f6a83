"""The Laplace approximation."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import keras
import numpy as np
from scipy import linalg

from tfbbb.base import types
from tfbbb.base.numbers import choice, positive_number
from tfbbb.base.private_apis import graph_of, mask_of, producer
from tfbbb.base.types import ArrayLike, Identifier, Options
from tfbbb.bayes import likelihoods, posteriors
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.posteriors.posterior import MAX_COVARIANCE, matrix_sides
from tfbbb.bayes.priors import Normal
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.inference.batches import Batches
from tfbbb.inference.curvature import Kind, curvature, learns_scale
from tfbbb.inference.curvature_sums import Structure, weights_of
from tfbbb.inference.hyperparameters import Evidence
from tfbbb.inference.method import (
    InferenceMethod,
    as_bayesian_model,
    batch_normalizations,
)
from tfbbb.inference.network_function import NetworkFunction
from tfbbb.inference.normal_noise import noise_of, set_noise
from tfbbb.inference.row_derivatives import is_product
from tfbbb.layers import VariationalLayer
from tfbbb.layers.sharing import calls_per_pass
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior

_STRUCTURES = ("diagonal", "kron", "full")
_KINDS = ("ggn", "empirical_fisher")
_BY_EVIDENCE = "marginal_likelihood"


class Laplace(InferenceMethod):
    """The normal posterior around trained weights: the Laplace approximation.

        q(w) = N(w*, H^-1),   H = C - d^2 log p(w*) / dw^2,

        log p(y) ~= log p(y | w*) + log p(w*) + D/2 log 2 pi - 1/2 log |H|

    w* are the trained weights (the posterior means of a `BayesianModel`), and C is the
    curvature of -log p(y | w) at w*, summed over the rows (MacKay 1992; Daxberger et
    al. 2021). The prior's own curvature is added once.

    By the generalised Gauss-Newton matrix q is the posterior of another network, which
    is linear in its weights around w* (Khan et al. 2019). The model predicts with this
    network (`method="linearised"`; Immer et al. 2021): draws of q for the network
    itself are far from the rows' targets where q is wide.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.linspace(-1, 1, 40).astype("float32")[:, None]
    >>> network = keras.Sequential([
    ...     keras.Input((1,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)
    ... ])
    >>> network.compile("adam", "mse")
    >>> history = network.fit(x, x**2, verbose=0)
    >>> laplace = tfbbb.inference.Laplace("full")
    >>> model = laplace.fit(network, x, x**2, likelihood="normal", verbose=0)
    >>> model.predictive(x).mean.shape
    (40, 1)

    Args:
        structure: What is kept of H, and the posterior that holds it exactly:

            - `"diagonal"`: each weight by itself, `mean_field_normal`;
            - `"kron"`: per weight tensor, a Kronecker product plus the prior,
              `MatrixNormal("eigenbasis")`, for dense layers and convolutions;
            - `"full"`: all weights of all layers, `JointNormal`, or
              `full_covariance_normal` of a single tensor; at most 4096.
        subset: `"all"` layers, or the `"last_layer"`; all other layers stay at their
            means, as points.
        curvature: C: `"ggn"`, the generalised Gauss-Newton matrix, or
            `"empirical_fisher"`, the sum of the outer products of the rows' gradients.
        prior_precision: The prior N(0, 1 / precision) of the new model:
            `"marginal_likelihood"` chooses a precision for each layer, and the learned
            noise of a `tfbbb.likelihoods.Normal`, by the largest log evidence. A number
            is the precision of all weights; None keeps the normal priors of the model.

    Raises:
        ValueError: An argument has none of these values.
    """

    linearised = True

    def __init__(
        self,
        structure: Structure = "kron",
        subset: Literal["all", "last_layer"] = "all",
        curvature: Kind = "ggn",
        prior_precision: float | str | None = _BY_EVIDENCE,
    ):
        self.structure = choice("structure", structure, _STRUCTURES)
        self.subset = choice("subset", subset, ("all", "last_layer"))
        self.curvature = choice("curvature", curvature, _KINDS)
        self.prior_precision = prior_precision
        if isinstance(prior_precision, str):
            choice("prior_precision", prior_precision, (_BY_EVIDENCE,))
        elif prior_precision is not None:
            self.prior_precision = positive_number("prior_precision", prior_precision)

    def fit(
        self,
        model: keras.Model,
        x: types.Structure,
        y: ArrayLike = None,
        *,
        likelihood: Identifier | Likelihood | None = None,
        sample_weight: ArrayLike = None,
        batch_size: int = 512,
        verbose: int = 1,
    ) -> BayesianModel:
        """Returns a new `BayesianModel` with the normal posterior.

        Args:
            model: A trained `BayesianModel` with one member, whose means are w*, or a
                trained Keras model.
            x: Inputs, or a dataset as `BayesianModel.fit` takes it.
            y: Targets in raw units.
            likelihood: p(y | outputs) of a Keras model, as `tfbbb.convert` takes it.
            sample_weight: Weight of each row, not negative.
            batch_size: Rows whose derivatives are in memory at a time.
            verbose: 1 for a progress bar, 0 for none.

        Raises:
            ValueError: The approximation is not defined for a layer, prior or
                likelihood of the model; the message says what would work.
        """
        given = model
        model = as_bayesian_model(model, likelihood)
        batches = Batches(x, y, sample_weight, batch_size, model)
        if mask_of(model.outputs[0]) is not None:
            raise ValueError(
                "The Laplace approximation counts every step of a sequence and knows "
                "no mask. Use another method of `tfbbb.inference`, or return the last "
                "step only (`return_sequences=False`). "
                f"Received: masked outputs of '{model.name}'"
            )
        targets = model.likelihood.check_targets(batches.targets)
        if model is not given:
            model.likelihood.adapt(targets, exposures=batches.rows.exposures)
        network = NetworkFunction(model)
        layers = self._layers(model)
        self._check(model, layers)
        weights = [weight for _, weight in weights_of(layers)]
        fixed = None
        if self.prior_precision != _BY_EVIDENCE:
            fixed = np.array([self._fixed_precision(weight) for weight in weights])
        bar = keras.utils.Progbar(len(batches), verbose=verbose)
        found = curvature(
            network, layers, batches, self.structure, self.curvature, bar.update
        )
        means = [np.asarray(w.mean, np.float64).ravel() for w in weights]
        return self._approximation(model, layers, Evidence(found, means), fixed)

    def _layers(self, model: BayesianModel) -> list[VariationalLayer]:
        layers = model.variational_layers
        if self.subset == "all":
            return layers
        graph = graph_of(model)
        last = None if graph is None else producer(graph.outputs[0])
        if last not in layers:
            raise ValueError(
                "The outputs of the model are not those of one layer with weights. Use "
                '`subset="all"`. Received: '
                f"subset='last_layer', layers {[layer.name for layer in layers]}"
            )
        return [last]

    def _check(self, model: BayesianModel, layers: Sequence[VariationalLayer]) -> None:
        if len(model.members) > 1:
            raise ValueError(
                "A Laplace approximation has one mode; take one member, "
                f"`model.members[0]`. Received: {len(model.members)} members"
            )
        _check_batch_normalization(model, layers)
        _check_likelihood(model.likelihood, self.curvature)
        if self.structure == "kron":
            _check_kronecker(model, layers)
        _check_sizes(self.structure, layers)

    def _fixed_precision(self, weight: VariationalWeight) -> float:
        """Returns the precision of a weight's prior that no evidence chooses."""
        if self.prior_precision is not None:
            return float(self.prior_precision)
        if not isinstance(weight.prior, Normal):
            raise ValueError(
                "A Laplace approximation keeps the priors of a model only if they are "
                'normal. Use `prior_precision="marginal_likelihood"`, which chooses '
                'such a prior, or give the layers `prior="normal"`. '
                f"Received: prior={weight.prior!r} of '{weight.name}', "
                "prior_precision=None"
            )
        log_scale = weight.prior.log_scale(weight.prior_parameters, weight.fan_in)
        return math.exp(-2.0 * float(log_scale))

    def _approximation(
        self,
        model: BayesianModel,
        layers: Sequence[VariationalLayer],
        evidence: Evidence,
        fixed: np.ndarray | None,
    ) -> BayesianModel:
        """Returns the model with q, after the choice of precisions and noise."""
        prior, factor = fixed, 1.0
        try:
            if prior is None:
                prior, factor = evidence.maximise(
                    [len(layer.variational_weights) for layer in layers],
                    tune_noise=learns_scale(model.likelihood),
                )
            log_evidence = evidence.log_evidence(prior, factor)
            named = [f"{layer.name}/{w.name}" for layer, w in weights_of(layers)]
            precisions = dict(zip(named, prior.tolist(), strict=True))
            new = self._model(model, layers, precisions)
            numbers = {id(layer): i for i, layer in enumerate(model.variational_layers)}
            chosen = [new.variational_layers[numbers[id(layer)]] for layer in layers]
            weights = [weight for _, weight in weights_of(chosen)]
            for block in evidence.curvature.blocks:
                own = [weights[i] for i in block.tensors]
                block.set_posterior(own, prior[list(block.tensors)], factor)
        except linalg.LinAlgError:
            raise ValueError(
                "The precision matrix is singular to rounding. Choose a larger "
                f"`prior_precision`. Received: {self!r}"
            ) from None
        if factor != 1.0:
            set_noise(new.likelihood, noise_of(model.likelihood) * factor**-0.5)
        diagnostics: dict[str, Any] = {
            "log_likelihood": float(evidence.log_likelihood(factor)),
            "num_weights": sum(weight.size for weight in weights),
        }
        if self.prior_precision is not None:
            diagnostics["prior_precision"] = precisions
        if learns_scale(new.likelihood):
            unit = new.likelihood.target_scale.numpy().astype(np.float64)
            diagnostics["noise"] = (noise_of(new.likelihood) * unit).tolist()
        new.inference = self.result(log_evidence, **diagnostics)
        return new

    def _model(
        self,
        model: BayesianModel,
        layers: Sequence[VariationalLayer],
        precisions: dict[str, float],
    ) -> BayesianModel:
        """Returns a copy with posteriors of the structure, and with the new priors."""
        wanted = {id(layer) for layer in layers}
        family: posteriors.Posterior = posteriors.MeanFieldNormal()
        if self.structure == "kron":
            family = posteriors.MatrixNormal("eigenbasis")
        elif self.structure == "full":
            weights = [weight for _, weight in weights_of(layers)]
            family = posteriors.FullCovarianceNormal()
            if len(weights) > 1:
                family = posteriors.JointNormal(sum(weight.size for weight in weights))

        def options(layer: VariationalLayer) -> Options:
            if id(layer) not in wanted:
                return {}
            changed: Options = {"posterior": family, "bias_posterior": family}
            if self.prior_precision is None:
                return changed
            for weight in layer.variational_weights:
                precision = precisions[f"{layer.name}/{weight.name}"]
                option = "bias_prior" if weight.name == "bias" else "prior"
                changed[option] = Normal(scale=precision**-0.5)
            return changed

        return with_posterior(model, "point", layer_options=options)


def _check_batch_normalization(
    model: BayesianModel, layers: Sequence[VariationalLayer]
) -> None:
    names = batch_normalizations(model)
    if names and len(layers) > 1:
        raise ValueError(
            "With batch normalization the loss of a row depends on the other rows of "
            "its batch, so there is no curvature row by row. Use "
            '`subset="last_layer"`, or layer or group normalization. '
            f"Received: batch normalization in {names}"
        )


def _check_likelihood(likelihood: Likelihood, kind: str) -> None:
    if isinstance(likelihood, likelihoods.Laplace) and kind != "empirical_fisher":
        raise ValueError(
            "The log density of the likelihood 'laplace' is linear in its location, so "
            'it has no curvature. Use `curvature="empirical_fisher"`, or the '
            f"likelihood 'student_t' or 'normal'. Received: likelihood={likelihood!r}"
        )


def _check_kronecker(model: BayesianModel, layers: Sequence[VariationalLayer]) -> None:
    remedy = 'Use `structure="diagonal"` or "full", or `subset="last_layer"`.'
    for layer in layers:
        if not is_product(layer):
            raise ValueError(
                "Kronecker factors exist for dense layers and for convolutions of one "
                "or two dimensions without groups, channels last. "
                f"{remedy} Received: '{layer.name}' of type {type(layer).__name__}"
            )
        calls = calls_per_pass(model, layer)
        if calls != 1:
            raise ValueError(
                "Kronecker factors assume that each layer is called once per row. "
                f"{remedy} Received: '{layer.name}' with "
                f"{'an unknown number of' if calls is None else calls} calls"
            )


def _check_sizes(structure: str, layers: Sequence[VariationalLayer]) -> None:
    weights = [w for layer in layers for w in layer.variational_weights]
    largest = {
        "diagonal": 0,
        "kron": max(max(matrix_sides(weight.shape)) for weight in weights),
        "full": sum(weight.size for weight in weights),
    }[structure]
    if largest > MAX_COVARIANCE:
        raise ValueError(
            f"A covariance matrix is for at most {MAX_COVARIANCE} weights. Use "
            '`structure="kron"` or "diagonal", or `subset="last_layer"`. '
            f"Received: structure={structure!r} with a matrix of {largest} weights"
        )
