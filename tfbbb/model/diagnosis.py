"""What a trained model has learned, whether it is right, and what to try next."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tfbbb.base.sampling_band import sampling_band
from tfbbb.base.texts import aligned, listed, shown_number, shown_share
from tfbbb.base.types import ArrayLike, Config
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.layer_posterior import (
    COLLAPSED_SHARE,
    CURE_OF_COLLAPSE,
    LayerPosterior,
    layer_posterior,
    named_layers,
)
from tfbbb.prediction.result import Predictive
from tfbbb.prediction.target_scores import in_intervals, is_of_classes
from tfbbb.scores.metrics import (
    expected_calibration_error,
    interval_coverage,
    negative_log_likelihood,
    reliability_diagram,
)
from tfbbb.scores.metrics.targets import checked_targets

LEVEL = 0.9
# Weights of the divergence that differ by a tenth count as the same: this accepts
# 1/(N - 1) for 1/N, but detects N counted before a validation split.
TOLERANCE = 1.1
# The probability that a calibrated model is within the range that chance explains.
_CONFIDENCE = 0.999
# More of the uncertainty than this is said to be of the weights.
_MOST_EPISTEMIC = 0.5
# Of 90 % intervals of positive targets, a twentieth may end below zero.
_MOST_BELOW_ZERO = 0.05


@dataclass(frozen=True)
class DiagnosedLayer:
    """The posterior of one layer, of all members.

    `at_prior` is the share of the weights whose posterior is their prior, None if that
    has no closed form; `signal_to_noise` the median of `|mean| / stddev`; `kl` in nats;
    `kl_weight` None if it is not set, and `given` whether the layer was made with it.
    """

    name: str
    weights: int
    at_prior: float | None
    signal_to_noise: float
    kl: float
    kl_weight: float | None
    given: bool


class Finding(NamedTuple):
    """Something that is wrong, and what to try in a program or with a table."""

    name: str
    sentence: str
    advice: str
    advice_of_table: str


@dataclass(frozen=True)
class Diagnosis:
    """What `tfbbb.diagnose` found: `print` shows a table.

    `trained_on` is the number N of the rows of `fit`, or of those given if it has not
    counted them; `method` the one of `tfbbb.inference` that gave the posterior, None
    for `fit`. `nll` and `nll_of_constant` are negative log-likelihoods of a row in
    nats, the second of a normal with the mean and variance of the targets, or of the
    shares of the classes (None for counts, masked targets and a single value).
    `coverage` is the share of the targets in their 90 % intervals, and
    `calibration_error` that of classes. `expected` is the share that should be right,
    `observed` the one that is, and `chance` its range for a calibrated model.
    `below_zero` is the share of the intervals that begin below zero where every target
    is positive.
    """

    num_rows: int
    trained_on: float
    method: str | None
    layers: tuple[DiagnosedLayer, ...]
    nll: float
    nll_of_constant: float | None
    epistemic_share: float | None
    coverage: float | None
    calibration_error: float | None
    expected: float
    observed: float
    chance: tuple[float, float]
    below_zero: float | None

    @property
    def at_prior(self) -> float | None:
        """Share of all weights whose posterior is their prior, within a tolerance."""
        known = [(x.at_prior, x.weights) for x in self.layers if x.at_prior is not None]
        if not known:
            return None
        return sum(share * size for share, size in known) / sum(x for _, x in known)

    @property
    def collapsed_layers(self) -> list[str]:
        """Names of the layers of which most weights are at their prior."""
        return [x.name for x in self.layers if (x.at_prior or 0.0) > COLLAPSED_SHARE]

    @property
    def kl_per_row(self) -> float:
        """KL(q || p) of all weights in nats, divided by N."""
        return sum(layer.kl for layer in self.layers) / self.trained_on

    @property
    def penalty(self) -> float:
        """What the loss of a row has for the divergence: `sum kl_weight * KL`."""
        return sum((layer.kl_weight or 0.0) * layer.kl for layer in self.layers)

    @property
    def gain(self) -> float | None:
        """What a row is likelier than under a constant prediction, in nats."""
        constant = self.nll_of_constant
        return None if constant is None else constant - self.nll

    @property
    def temperatures(self) -> dict[str, float]:
        """`kl_weight * N` of each layer whose weight is set; 1 is Bayes' rule."""
        return {
            layer.name: layer.kl_weight * self.trained_on
            for layer in self.layers
            if layer.kl_weight is not None
        }

    @property
    def unset_layers(self) -> list[str]:
        """Names of the layers whose `kl_weight` is not set, where `fit` needs it."""
        if self.method is not None:
            return []
        return [layer.name for layer in self.layers if layer.kl_weight is None]

    @property
    def wrong_temperatures(self) -> dict[str, float]:
        """The temperatures that layers were given and that are not 1."""
        given = {layer.name for layer in self.layers if layer.given}
        return {
            name: temperature
            for name, temperature in self.temperatures.items()
            if name in given and not 1.0 / TOLERANCE <= temperature <= TOLERANCE
        }

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong, the causes before their effects; empty if nothing is."""
        return tuple(
            Finding(name, sentence(self), *advice)
            for name, applies, sentence, *advice in _RULES
            if applies(self)
        )

    def rows(self) -> list[tuple[str, str, str]]:
        """Returns each figure with its name and a sentence."""
        found = []
        if self.at_prior is not None:
            share = shown_share(self.at_prior)
            sentence = "Share of the weights whose posterior is their prior."
            found.append(("weights at their prior", share, sentence))
        for layer in self.layers:
            at = layer.at_prior
            sentence = f"Median |mean| / stddev of {layer.weights:,} weights" + (
                "." if at is None else f"; {shown_share(at)} are at their prior."
            )
            ratio = shown_number(layer.signal_to_noise, 2)
            found.append((f"signal-to-noise of {layer.name}", ratio, sentence))
        constant = self.nll_of_constant
        than = "" if constant is None else f"; of a constant {constant:.3g}"
        found += [
            (
                "negative log-likelihood per row",
                f"{self.nll:.3g}",
                f"Averaged over {self.num_rows} rows, in nats{than}.",
            ),
            (
                "KL divergence per row",
                f"{self.kl_per_row:.3g}",
                f"Of that the loss adds {self.penalty:.3g}, in nats.",
            ),
            (
                "rows of training, N",
                f"{self.trained_on:.0f}",
                f"As training counted them; {self.num_rows} are given here.",
            ),
        ]
        temperatures = self.temperatures.values()
        if temperatures:
            ends = dict.fromkeys(f"{f(temperatures):.3g}" for f in (min, max))
            sentence = "kl_weight * N of the layers; 1 is Bayes' rule."
            found.append(("temperature", " to ".join(ends), sentence))
        if self.epistemic_share is not None:
            sentence = "Share of the uncertainty that more rows would lower."
            share = shown_share(self.epistemic_share)
            found.append(("epistemic share", share, sentence))
        least, most = map(shown_share, self.chance)
        by_chance = f"by chance {least} to {most}."
        if self.coverage is not None:
            sentence = f"Share of the targets in their 90 % intervals; {by_chance}"
            found.append(("coverage", shown_share(self.coverage), sentence))
        if self.calibration_error is not None:
            sentence = (
                f"{shown_share(self.expected)} should be right and "
                f"{shown_share(self.observed)} are; {by_chance}"
            )
            error = f"{self.calibration_error:.3f}"
            found.append(("expected calibration error", error, sentence))
        return found

    def to_json(self) -> Config:
        """Returns the figures and the findings as the report of a table has them."""
        return {
            "figures": [
                {"name": name, "figure": figure, "sentence": sentence}
                for name, figure, sentence in self.rows()
            ],
            "findings": [
                {"name": x.name, "sentence": x.sentence, "advice": x.advice_of_table}
                for x in self.findings
            ],
        }

    def __str__(self) -> str:
        lines = aligned([("what", "figure", "it says"), *self.rows()], right={1})
        lines.insert(1, "-" * max(map(len, lines)))
        lines += ["", *(f"- {x.sentence} {x.advice}" for x in self.findings)]
        return "\n".join(lines if self.findings else [*lines, _NOTHING])


def diagnose(
    model: BayesianModel,
    x: ArrayLike,
    y: ArrayLike,
    *,
    num_samples: int = 100,
    seed: int = 0,
) -> Diagnosis:
    """Says what a model has learned, whether it is right, and what to try next.

    Of point weights, as deep ensembles and MCMC have them, it says nothing.

    The figures, for n rows given and N rows of `fit`:

        weights at their prior    share of i with KL(q_i || p_i) < 0.01 nats
        signal-to-noise           |mean_i| / stddev_i, the median of a layer
        negative log-likelihood   -(1/n) sum_j log p(y_j | x_j, data)
        KL divergence per row     (1/N) sum_layers KL(q || p)
        temperature               kl_weight * N
        epistemic share           sum_j Var_w[E[y_j | w]] / sum_j Var[y_j]
                                  sum_j I[y_j; w] / sum_j H[y_j] for classes
        coverage                  share of y_j in their 90 % intervals
        calibration error         sum_b (n_b / n) |accuracy_b - confidence_b|

    A weight whose mean is less than 0.14 prior standard deviations from the prior mean,
    and whose standard deviation is the prior's within a tenth, is at its prior. The
    coverage, or the number of classes that are right, is called wrong if a calibrated
    model has it once in a thousand times by chance.

    Give rows that the model was not trained on. On the training rows the calibration
    looks better than it is.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> inputs = keras.Input((2,))
    >>> # Weights that start at their prior, N(0, 1 / fan_in).
    >>> layer = tfbbb.layers.DenseVariational(
    ...     1, use_bias=False, kernel_initializer="zeros", prior="normal",
    ...     posterior=tfbbb.posteriors.MeanFieldNormal(initial_scale=1.0),
    ... )
    >>> model = tfbbb.BayesianModel(inputs, layer(inputs))
    >>> rows = np.random.default_rng(0).normal(size=(50, 2))
    >>> diagnosis = tfbbb.diagnose(model, rows, rows[:, :1])
    >>> diagnosis.at_prior
    1.0
    >>> [finding.name for finding in diagnosis.findings]
    ['kl_weight_unset', 'collapsed']

    Args:
        model: The model, whose likelihood says what the targets are.
        x: Inputs of rows, as `model.predictive` takes them.
        y: Their targets in raw units, as the functions of `tfbbb.metrics` take them.
        num_samples: Number of draws from the posterior, at least two.
        seed: Seed of the draws.

    Returns:
        A `Diagnosis` with the figures and the findings; `print` shows them.

    Raises:
        ValueError: The model has no likelihood, or the targets do not fit the model.
    """
    if not isinstance(model, BayesianModel):
        raise ValueError(
            "A diagnosis needs the likelihood of the targets. Pass "
            "`tfbbb.BayesianModel(network, likelihood=...)`. "
            f"Received: model of type {type(model).__name__}"
        )
    prediction = model.predictive(x, num_samples=num_samples, seed=seed)
    if is_of_classes(prediction):
        parts = prediction.mutual_information, prediction.entropy
    else:
        parts = prediction.epistemic, prediction.variance
    return diagnosed(model, prediction, y, share_of_total(*parts))


def diagnosed(
    model: BayesianModel,
    prediction: Predictive,
    y: ArrayLike,
    epistemic_share: float | None,
) -> Diagnosis:
    """Returns the diagnosis of a model by a prediction of rows, and their targets."""
    scored: Any = prediction
    coverage = error = nll_of_constant = below_zero = None
    is_censored = getattr(scored, "censored", False)
    targets = np.asarray(y, np.float64)
    if not is_censored:
        targets = checked_targets(scored, y, "any", "diagnose", by_place=True)
        nll_of_constant = _nll_of_constant(prediction, targets)
        below_zero = _share_below_zero(prediction, targets)
    if is_censored:
        coverage = float(np.mean(in_intervals(scored, targets, [LEVEL])))
        expected, observed = LEVEL, coverage
    elif is_of_classes(prediction):
        error = expected_calibration_error(scored, targets)
        whole = reliability_diagram(scored, targets, bins=1)
        expected, observed = float(whole.confidence[0]), float(whole.accuracy[0])
    else:
        coverage = interval_coverage(scored, targets, LEVEL)
        expected, observed = LEVEL, coverage
    ends = sampling_band(len(targets), expected, _CONFIDENCE)
    return Diagnosis(
        num_rows=len(targets),
        trained_on=model.num_rows or len(targets),
        method=None if model.inference is None else model.inference.method,
        layers=_diagnosed_layers(model),
        nll=-float(np.mean(scored.log_prob(targets)))
        if is_censored
        else negative_log_likelihood(scored, targets),
        nll_of_constant=nll_of_constant,
        epistemic_share=epistemic_share,
        coverage=coverage,
        calibration_error=error,
        expected=expected,
        observed=observed,
        chance=(float(ends[0]) / len(targets), float(ends[1]) / len(targets)),
        below_zero=below_zero,
    )


def share_of_total(part: np.ndarray, total: np.ndarray) -> float | None:
    """Returns a part of the uncertainty of rows as a share; None if not finite."""
    share = float(np.sum(part) / np.sum(total)) if np.sum(total) else math.nan
    return share if math.isfinite(share) else None


def _diagnosed_layers(model: BayesianModel) -> tuple[DiagnosedLayer, ...]:
    found = []
    for name, layer in named_layers(model).items():
        if all(weight.posterior.deterministic for weight in layer.variational_weights):
            continue
        posterior: LayerPosterior = layer_posterior(layer)
        found.append(
            DiagnosedLayer(
                name=name,
                weights=posterior.signal_to_noise.size,
                at_prior=posterior.collapsed,
                signal_to_noise=float(np.median(posterior.signal_to_noise)),
                kl=posterior.kl,
                kl_weight=float(layer.kl_weight.numpy())
                if layer.kl_weight_is_set
                else None,
                given=not layer.kl_weight_is_automatic,
            )
        )
    return tuple(found)


def _nll_of_constant(prediction: Predictive, targets: np.ndarray) -> float | None:
    if prediction.mask is not None:
        return None
    if is_of_classes(prediction):
        # One distribution of the classes for each place of a row.
        places = math.prod(targets.shape[1:])
        _, counts = np.unique(targets, return_counts=True)
        shares = counts / counts.sum()
        return float(-places * np.sum(shares * np.log(shares)))
    variance = np.var(targets, axis=0)
    if prediction.discrete or not (variance > 0.0).all():
        return None
    return float(np.sum(0.5 * np.log(2.0 * math.pi * math.e * variance)))


def _share_below_zero(prediction: Predictive, targets: np.ndarray) -> float | None:
    if is_of_classes(prediction) or prediction.discrete or not (targets > 0.0).all():
        return None
    return float(np.mean(prediction.interval(LEVEL)[0] < 0.0))


_Condition: TypeAlias = Callable[[Diagnosis], bool]
_Sentence: TypeAlias = Callable[[Diagnosis], str]
_NOTHING = (
    "Nothing is wrong with these figures. Whether the model underfits shows beside "
    "another, such as one at the temperature 0.05."
)
# Name, condition, sentence, and what to try in a program and with a table.
_RULES: tuple[tuple[str, _Condition, _Sentence, str, str], ...] = (
    (
        "kl_weight_unset",
        lambda d: bool(d.unset_layers),
        lambda d: f"The `kl_weight` of {listed(d.unset_layers)} is not set.",
        "Call `fit`, which sets it to 1/N.",
        "Train the model again, which sets it to 1/N.",
    ),
    (
        "kl_weight_wrong",
        lambda d: bool(d.wrong_temperatures),
        lambda d: (
            "The `kl_weight` given does not fit N: the temperature is "
            + listed([f"{t:.3g} in {x}" for x, t in d.wrong_temperatures.items()])
            + "."
        ),
        "Leave `kl_weight` out, so that `fit` sets 1/N, and choose another temperature "
        "by a `kl_schedule`.",
        "Train the model again, which sets it to 1/N.",
    ),
    (
        "collapsed",
        lambda d: bool(d.collapsed_layers),
        lambda d: (
            f"The posterior of {listed(d.collapsed_layers)} has collapsed onto its "
            "prior: the weights have learned nothing from the rows."
        ),
        f"To use more weights, try {CURE_OF_COLLAPSE}.",
        "Give more rows, or columns that tell more of the target.",
    ),
    (
        "learned_nothing",
        lambda d: d.gain is not None and d.gain <= 0.0 and not d.collapsed_layers,
        lambda d: (
            f"A constant prediction is likelier: its negative log-likelihood is "
            f"{d.nll_of_constant:.3g} nats per row, and that of the model {d.nll:.3g}."
        ),
        "Train longer or with a larger learning rate, and scale the inputs to unit "
        "variance.",
        "Give columns that tell more of the target, more rows or more time.",
    ),
    (
        "kl_dominates",
        lambda d: d.gain is not None and 0.0 < d.gain < d.penalty,
        lambda d: (
            f"The divergence costs more, {d.penalty:.3g} nats per row, than the "
            f"weights gain over a constant prediction, {d.gain:.3g}."
        ),
        "Train longer, use fewer weights or more rows, or lower the temperature.",
        "Give more rows or more time, or leave out columns that tell nothing.",
    ),
    (
        "too_sure",
        lambda d: d.observed < d.chance[0],
        lambda d: _calibration_sentence(d, "sure"),
        "Use `members=5`, a likelihood with a noise of each row or longer tails, or "
        "`model.recalibrate` with rows held out.",
        "Give more rows or more time, and widen the intervals by what came true.",
    ),
    (
        "too_unsure",
        lambda d: d.observed > d.chance[1],
        lambda d: _calibration_sentence(d, "unsure"),
        "Train longer, lower the temperature by a `kl_schedule`, or use "
        "`model.recalibrate` with rows held out.",
        "Give more rows or more time, and narrow the intervals by what came true.",
    ),
    (
        "epistemic",
        lambda d: (d.epistemic_share or 0.0) > _MOST_EPISTEMIC,
        lambda d: (
            f"The weights are the reason of {shown_share(d.epistemic_share or 0.0)} of "
            "the uncertainty."
        ),
        "Train longer, label more rows like these, or use fewer weights.",
        "Give more rows like these: they would lower it.",
    ),
    (
        "below_zero",
        lambda d: (d.below_zero or 0.0) > _MOST_BELOW_ZERO,
        lambda d: (
            f"{shown_share(d.below_zero or 0.0)} of the intervals begin below zero, "
            "and every target is positive."
        ),
        "Use `likelihood='log_normal'` or `'gamma'`.",
        "Choose the likelihood of positive numbers, log-normal or gamma.",
    ),
)


def _calibration_sentence(diagnosis: Diagnosis, how: str) -> str:
    what = "classes are right" if diagnosis.coverage is None else "targets are inside"
    return (
        f"The predictions are too {how}: {shown_share(diagnosis.observed)} of the "
        f"{what}, and {shown_share(diagnosis.expected)} should be."
    )
