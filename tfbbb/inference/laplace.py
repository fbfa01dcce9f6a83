"""The Laplace approximation."""

from collections.abc import Sequence
from typing import Any, Literal

import keras
import numpy as np
from scipy import linalg

from tfbbb.base import types
from tfbbb.base.numbers import choice, positive_number
from tfbbb.base.private_apis import (
    graph_of,
    mask_of,
    producer,
)
from tfbbb.base.types import ArrayLike, Identifier, Options
from tfbbb.bayes import likelihoods, posteriors
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.posteriors.posterior import MAX_COVARIANCE, matrix_sides
from tfbbb.bayes.priors import Normal
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.inference.batches import Batches
from tfbbb.inference.curvature import Curvature, Kind, curvature, learns_scale
from tfbbb.inference.curvature_blocks import (
    Block,
    DenseBlock,
    DiagonalBlock,
    KroneckerBlock,
)
from tfbbb.inference.curvature_sums import Structure
from tfbbb.inference.hyperparameters import Evidence
from tfbbb.inference.method import InferenceMethod, as_bayesian_model
from tfbbb.inference.network_function import NetworkFunction
from tfbbb.inference.normal_noise import noise_of, set_noise
from tfbbb.inference.prior_curvature import log_prior, prior_curvature
from tfbbb.inference.requirements import batch_normalizations
from tfbbb.inference.row_derivatives import is_product
from tfbbb.inference.scale_tril import set_scale_tril
from tfbbb.layers import VariationalLayer
from tfbbb.layers.sharing import calls_per_pass
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.conversion import with_posterior

_STRUCTURES = ("diagonal", "kron", "layer", "full")
_KINDS = ("ggn", "empirical_fisher", "hessian")
_PER = ("model", "layer", "weight")
_BY_EVIDENCE = "marginal_likelihood"
_BY_ROWS = "validation"
# Precisions that are compared on validation rows.
_GRID = np.logspace(-4.0, 5.0, 19)


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
            - `"layer"`: all weights of a tensor, `full_covariance_normal`;
            - `"full"`: all weights of all layers, `JointNormal`; at most 4096.
        subset: `"all"`, `"last_layer"`, or a list of the names of layers. All other
            layers stay at their means, as points.
        curvature: C: `"ggn"`, the generalised Gauss-Newton matrix; `"hessian"`, all
            second derivatives; or `"empirical_fisher"`, the sum of the outer products
            of the rows' gradients.
        prior_precision: How the prior N(0, 1 / precision) is chosen, which the new
            model gets: `"marginal_likelihood"` maximises the log evidence,
            `"validation"` the log likelihood of the rows in `validation_data`; or a
            number. None keeps the priors of the model.
        prior_per: With `"marginal_likelihood"`, what has a precision of its own:
            `"model"`, `"layer"`, or `"weight"` for kernels and biases apart.
        noise: The learned noise of a `tfbbb.likelihoods.Normal`:
            `"marginal_likelihood"` chooses it with the precisions; a number is the
            standard deviation in the units of the targets; None keeps it. Likelihoods
            without a learned scale stay as they are.

    Raises:
        ValueError: An argument has none of these values.
    """

    linearised = True

    def __init__(
        self,
        structure: Structure = "kron",
        subset: str | Sequence[str] = "all",
        curvature: Kind = "ggn",
        prior_precision: float | str | None = _BY_EVIDENCE,
        prior_per: Literal["model", "layer", "weight"] = "layer",
        noise: float | str | None = _BY_EVIDENCE,
    ):
        self.structure = choice("structure", structure, _STRUCTURES)
        if isinstance(subset, str):
            choice("subset", subset, ("all", "last_layer"))
        self.subset = subset if isinstance(subset, str) else list(subset)
        self.curvature = choice("curvature", curvature, _KINDS)
        self.prior_precision = prior_precision
        if isinstance(prior_precision, str):
            choice("prior_precision", prior_precision, (_BY_EVIDENCE, _BY_ROWS))
        elif prior_precision is not None:
            self.prior_precision = positive_number("prior_precision", prior_precision)
        self.prior_per = choice("prior_per", prior_per, _PER)
        self.noise = noise
        if isinstance(noise, str):
            choice("noise", noise, (_BY_EVIDENCE,))
        elif noise is not None:
            self.noise = positive_number("noise", noise)
        if structure == "kron" and curvature == "hessian":
            raise ValueError(
                "The whole Hessian has no Kronecker factors. Use "
                '`curvature="ggn"` or "empirical_fisher", or another structure. '
                f"Received: structure={structure!r}, curvature={curvature!r}"
            )

    def fit(
        self,
        model: keras.Model,
        x: types.Structure,
        y: ArrayLike = None,
        *,
        likelihood: Identifier | Likelihood | None = None,
        sample_weight: ArrayLike = None,
        batch_size: int = 512,
        validation_data: tuple[types.Structure, ArrayLike] | None = None,
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
            validation_data: (x, y) for `prior_precision="validation"`.
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
            model.likelihood.adapt(targets)
        network = NetworkFunction(model)
        layers = self._layers(model)
        self._check(model, layers, validation_data)
        bar = keras.utils.Progbar(len(batches), verbose=verbose)
        found = curvature(
            network, layers, batches, self.structure, self.curvature, bar.update
        )
        weights = [w for layer in layers for w in layer.variational_weights]
        means = [np.asarray(w.mean, np.float64).ravel() for w in weights]
        approximation = _Approximation(self, model, layers, weights, means, found)
        return approximation.posterior(validation_data)

    def _layers(self, model: BayesianModel) -> list[VariationalLayer]:
        layers = model.variational_layers
        if self.subset == "all":
            return layers
        if self.subset == "last_layer":
            graph = graph_of(model)
            last = None if graph is None else producer(graph.outputs[0])
            if last not in layers:
                raise ValueError(
                    "The outputs of the model are not those of one layer with weights. "
                    'Name the layers, `subset=["name", ...]`. '
                    f"Received: subset='last_layer', layers "
                    f"{[layer.name for layer in layers]}"
                )
            return [last]
        known = {layer.name: layer for layer in layers}
        unknown = [name for name in self.subset if name not in known]
        if unknown or not self.subset:
            raise ValueError(
                f"The model has the layers {sorted(known)} with posteriors. "
                f"Received: subset={self.subset!r}"
            )
        return [layer for layer in layers if layer.name in self.subset]

    def _check(
        self,
        model: BayesianModel,
        layers: Sequence[VariationalLayer],
        validation_data: tuple[types.Structure, ArrayLike] | None,
    ) -> None:
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
        if (self.prior_precision == _BY_ROWS) != (validation_data is not None):
            raise ValueError(
                '`validation_data` and `prior_precision="validation"` need each other. '
                f"Received: prior_precision={self.prior_precision!r}, "
                f"validation_data={'given' if validation_data else None}"
            )
        if isinstance(self.noise, int | float):
            likelihood = model.likelihood
            if not learns_scale(likelihood) or likelihood.num_targets != 1:
                raise ValueError(
                    "A number as `noise` replaces the learned noise of one target with "
                    'the likelihood "normal"; give other likelihoods theirs, such as '
                    "`tfbbb.likelihoods.Normal(scale=2.0)`. "
                    f"Received: noise={self.noise!r}, likelihood={likelihood!r}"
                )


class _Approximation:
    """The choice of prior and noise for one curvature, and the model that has q."""

    def __init__(
        self,
        method: Laplace,
        model: BayesianModel,
        layers: Sequence[VariationalLayer],
        weights: Sequence[VariationalWeight],
        means: Sequence[np.ndarray],
        found: Curvature,
    ):
        self._method = method
        self._model = model
        self._layers = layers
        self._weights = weights
        self._means = means
        self._found = found
        self._num_negative = found.num_clipped

    def posterior(
        self, validation_data: tuple[types.Structure, ArrayLike] | None
    ) -> BayesianModel:
        """Returns the new model, with its inference."""
        method = self._method
        tunes = _BY_EVIDENCE in (method.prior_precision, self._noise_choice())
        if method.curvature == "hessian":
            self._without_negative(always=tunes or validation_data is not None)
        if method.prior_precision == _BY_ROWS:
            assert validation_data is not None
            return self._best_on_rows(validation_data)
        evidence = Evidence(self._found, self._means)
        prior, factor = self._start()
        groups = None
        if method.prior_precision == _BY_EVIDENCE:
            groups = self._groups()
        tune_noise = self._noise_choice() == _BY_EVIDENCE
        if groups is not None or tune_noise:
            self._prepare_spectra(groups)
            prior, factor = evidence.maximise(
                groups, prior, factor=factor, tune_noise=tune_noise
            )
        return self._model_with(evidence, prior, factor)

    def _noise_choice(self) -> float | str | None:
        return self._method.noise if learns_scale(self._model.likelihood) else None

    def _start(self) -> tuple[list[np.ndarray], float]:
        """Returns the prior's curvature and the factor before any choice."""
        method, factor = self._method, 1.0
        noise = self._noise_choice()
        if isinstance(noise, int | float):
            (scale,) = _raw_noise(self._model.likelihood)
            factor = (scale / noise) ** 2
        if method.prior_precision is None:
            prior = [
                prior_curvature(weight, mean)
                for weight, mean in zip(self._weights, self._means, strict=True)
            ]
        else:
            given = method.prior_precision
            precision = 1.0 if isinstance(given, str) else float(given)
            prior = [np.full(len(mean), precision) for mean in self._means]
        return prior, factor

    def _groups(self) -> list[int]:
        """Returns the number of each tensor's group, which has one precision."""
        per = self._method.prior_per
        keys = []
        for number, layer in enumerate(self._layers):
            for weight in layer.variational_weights:
                part = weight.name == "bias" if per == "weight" else False
                keys.append((0 if per == "model" else number, part))
        order = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        return [order[key] for key in keys]

    def _prepare_spectra(self, groups: Sequence[int] | None) -> None:
        """Computes eigenvectors where they spare factorisations of a search."""
        if groups is None:
            return
        for block in self._found.blocks:
            one_precision = len({groups[i] for i in block.tensors}) == 1
            if isinstance(block, DenseBlock) and one_precision:
                block.decompose()

    def _without_negative(self, always: bool) -> None:
        """Removes negative curvature where the posterior needs it, and counts it."""
        kept = []
        prior, factor = self._start()
        for block in self._found.blocks:
            own = [prior[i] for i in block.tensors]
            if always or not _is_positive(block, own, factor):
                block, number = block.without_negative()
                self._num_negative += number
            kept.append(block)
        self._found.blocks = kept

    def _best_on_rows(
        self, validation_data: tuple[types.Structure, ArrayLike]
    ) -> BayesianModel:
        """Returns the model whose precision predicts validation rows best."""
        x, y = validation_data
        evidence = Evidence(self._found, self._means)
        tune_noise = self._noise_choice() == _BY_EVIDENCE
        best: tuple[float, float] | None = None
        _, start = self._start()
        model = None
        for precision in _GRID:
            prior = [np.full(len(mean), precision) for mean in self._means]
            factor = start
            if tune_noise:
                _, factor = evidence.maximise(
                    None, prior, factor=start, tune_noise=True
                )
            if model is None:
                model = self._build(prior)
            self._set(model, prior, factor)
            score = float(np.mean(model.predictive(x, seed=0).log_prob(y)))
            if best is None or score > best[0]:
                best, chosen = (score, precision), (prior, factor)
        return self._model_with(evidence, *chosen)

    def _model_with(
        self, evidence: Evidence, prior: Sequence[np.ndarray], factor: float
    ) -> BayesianModel:
        try:
            if self._method.prior_precision is None:
                at_mode = sum(
                    log_prior(weight, mean)
                    for weight, mean in zip(self._weights, self._means, strict=True)
                )
            else:
                at_mode = evidence.normal_log_prior([each[0] for each in prior])
            log_evidence = evidence.log_evidence(prior, factor, at_mode)
            new = self._build(prior)
            self._set(new, prior, factor)
            smallest, largest = self._extremes(prior, factor)
        except linalg.LinAlgError:
            raise ValueError(
                "The precision matrix is not positive definite: the weights are no "
                "minimum of the loss. Train longer, or choose a larger "
                "`prior_precision`. "
                f"Received: {self._method!r}"
            ) from None
        diagnostics: dict[str, Any] = {
            "condition": largest / smallest,
            "negative_eigenvalues_clipped": self._num_negative,
            "log_likelihood": float(evidence.log_likelihood(factor)),
            "num_weights": sum(len(mean) for mean in self._means),
        }
        if self._method.prior_precision is not None:
            diagnostics["prior_precision"] = {
                name: float(each[0])
                for name, each in zip(self._names(), prior, strict=True)
            }
        if learns_scale(new.likelihood):
            diagnostics["noise"] = _raw_noise(new.likelihood).tolist()
        new.inference = self._method.result(log_evidence, **diagnostics)
        return new

    def _names(self) -> list[str]:
        return [
            f"{layer.name}/{weight.name}"
            for layer in self._layers
            for weight in layer.variational_weights
        ]

    def _extremes(
        self, prior: Sequence[np.ndarray], factor: float
    ) -> tuple[float, float]:
        pairs = [
            block.extreme_eigenvalues([prior[i] for i in block.tensors], factor)
            for block in self._found.blocks
        ]
        return min(low for low, _ in pairs), max(high for _, high in pairs)

    def _build(self, prior: Sequence[np.ndarray]) -> BayesianModel:
        """Returns a model with posteriors of the structure, and with the new priors."""
        names = dict(zip(self._names(), prior, strict=True))
        wanted = {id(layer) for layer in self._layers}
        family: posteriors.Posterior = posteriors.MeanFieldNormal()
        if self._method.structure == "kron":
            family = posteriors.MatrixNormal("eigenbasis")
        elif self._method.structure == "layer":
            family = posteriors.FullCovarianceNormal()
        elif self._method.structure == "full":
            family = posteriors.JointNormal(sum(len(mean) for mean in self._means))

        def options(layer: VariationalLayer) -> Options:
            if id(layer) not in wanted:
                return {}
            changed: Options = {"posterior": family, "bias_posterior": family}
            if self._method.prior_precision is None:
                return changed
            for weight in layer.variational_weights:
                precision = names[f"{layer.name}/{weight.name}"][0]
                option = "bias_prior" if weight.name == "bias" else "prior"
                changed[option] = Normal(scale=float(precision**-0.5))
            return changed

        new = with_posterior(self._model, "point", layer_options=options)
        new.inference = self._method.result()
        return new

    def _set(
        self, new: BayesianModel, prior: Sequence[np.ndarray], factor: float
    ) -> None:
        """Sets the posteriors and the noise of a model that `_build` made."""
        numbers = {
            id(layer): i for i, layer in enumerate(self._model.variational_layers)
        }
        layers = [new.variational_layers[numbers[id(layer)]] for layer in self._layers]
        weights = [w for layer in layers for w in layer.variational_weights]
        for block in self._found.blocks:
            own = [prior[i] for i in block.tensors]
            _set_posterior(block, [weights[i] for i in block.tensors], own, factor)
        if factor != 1.0:
            noise = noise_of(self._model.likelihood) * factor**-0.5
            set_noise(new.likelihood, noise)


def _set_posterior(
    block: Block,
    weights: Sequence[VariationalWeight],
    prior: Sequence[np.ndarray],
    factor: float,
) -> None:
    """Sets q of weights to the inverse of a block's precision."""
    variables = weights[0].variables
    if isinstance(block, DiagonalBlock):
        log_scale = -0.5 * np.log(block.precision(prior, factor))
        variables["log_scale"].assign(log_scale.reshape(weights[0].shape))
    elif isinstance(block, KroneckerBlock):
        _, row_vectors, column_vectors = block.eigen
        variables["log_scale"].assign(-0.5 * np.log(block.precision(prior, factor)))
        variables["row_basis"].assign(row_vectors)
        variables["column_basis"].assign(column_vectors)
    elif isinstance(block, DenseBlock):
        set_scale_tril(weights, block.scale_tril(prior, factor))


def _raw_noise(likelihood: Likelihood) -> np.ndarray:
    """Returns the noise of a normal likelihood in the units of the targets, [k]."""
    return noise_of(likelihood) * likelihood.target_scale.numpy().astype(np.float64)


def _is_positive(block: Block, prior: Sequence[np.ndarray], factor: float) -> bool:
    try:
        block.log_determinant(prior, factor)
    except linalg.LinAlgError:
        return False
    return True


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
    remedy = 'Use `structure="diagonal"`, "layer" or "full", or a `subset` without it.'
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
        "layer": max(weight.size for weight in weights),
        "full": sum(weight.size for weight in weights),
    }[structure]
    if largest > MAX_COVARIANCE:
        raise ValueError(
            f"A covariance matrix is for at most {MAX_COVARIANCE} weights. Use "
            '`structure="kron"` or "diagonal", or `subset="last_layer"`. '
            f"Received: structure={structure!r} with a matrix of {largest} weights"
        )
