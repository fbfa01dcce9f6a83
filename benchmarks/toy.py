"""Curves of one input: the predictive band beside that of a NUTS reference."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from comparisons import Comparison
from program import argument_parser, panels, run
from records import RecordFile
from timing import markdown_table

UNITS = 50
# Standard deviations of the prior, in standard units of input and target.
FIRST_SCALE, BIAS_SCALE, LAST_SCALE = 2.0, 1.0, UNITS**-0.5
GRID = 41
# Levels of the quantiles that stand for a distribution.
LEVELS = (np.arange(64) + 0.5) / 64
REFERENCE = "NUTS"
METHODS = (
    REFERENCE,
    "NUTS, other seed",
    "mean field",
    "5 members at 0.1",
    "full covariance per layer",
    "noise alone",
)


@dataclass(frozen=True)
class Curve:
    """Targets that are a function of one input, and noise.

    Attributes:
        inputs: Range of the training inputs.
        shown: Range of the inputs that are predicted.
        rows: Number of training rows.
        noise: Standard deviation of the noise, which all methods know.
    """

    inputs: tuple[float, float]
    shown: tuple[float, float]
    rows: int
    noise: float

    @property
    def grid(self) -> np.ndarray:
        """The inputs that are predicted, [GRID]."""
        return np.linspace(*self.shown, GRID)


def cubic(x: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Returns `x^3 + e`, e ~ N(0, 9) (Hernández-Lobato and Adams 2015, section 5.1)."""
    return x**3 + 3.0 * noise


def waves(x: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Returns the curve of Blundell et al. 2015, section 5.2, with e ~ N(0, 0.02^2).

    `y = x + 0.3 sin(2 pi (x + e)) + 0.3 sin(4 pi (x + e)) + e`
    """
    e = 0.02 * noise
    shifted = 2.0 * math.pi * (x + e)
    return x + 0.3 * np.sin(shifted) + 0.3 * np.sin(2.0 * shifted) + e


FUNCTIONS = {"cubic": cubic, "waves": waves}


@functools.cache
def curve(name: str) -> Curve:
    """Returns the settings of a curve."""
    if name == "cubic":
        return Curve((-4.0, 4.0), (-6.0, 6.0), 20, 3.0)
    # The noise is within the sine, too: its standard deviation is that of y given x,
    # averaged over x.
    random = np.random.default_rng(0)
    x = random.uniform(0.0, 0.5, (2000, 1))
    y = waves(x, random.normal(size=(2000, 500)))
    return Curve((0.0, 0.5), (-0.2, 0.7), 100, float(np.sqrt(y.var(axis=1).mean())))


def training_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns inputs and targets, [rows] each."""
    random = np.random.default_rng(1)
    x = random.uniform(*curve(name).inputs, curve(name).rows)
    return x, FUNCTIONS[name](x, random.normal(size=len(x)))


def standard_inputs(name: str, x: np.ndarray) -> np.ndarray:
    """Returns inputs in standard units of the training inputs, [n, 1]."""
    rows, _ = training_rows(name)
    return ((x - rows.mean()) / rows.std())[:, np.newaxis].astype("float32")


def main(arguments: Sequence[str] | None = None) -> None:
    """Computes the bands and their distances from the reference."""
    parser = argument_parser(__doc__)
    options = parser.parse_args(arguments)
    run(
        __file__,
        options,
        lambda measured: measure(measured, smoke=options.smoke),
        report,
        draw,
    )


def measure(measured: RecordFile, *, smoke: bool) -> None:
    """Adds a record for each curve and method."""
    nuts = {"chains": 4, "draws": 1000, "burn_in": 1000, "depth": 9}
    training = {"steps": 10_000, "draws": 4000}
    methods: Sequence[str] = METHODS
    if smoke:
        nuts |= {"chains": 2, "draws": 100, "burn_in": 150, "depth": 5}
        training |= {"steps": 3000, "draws": 500}
        methods = (REFERENCE, "mean field", "noise alone")
    for name in ("cubic",) if smoke else FUNCTIONS:
        for method in methods:
            is_nuts = method.startswith(REFERENCE)
            seed = int(method == METHODS[1])
            settings = nuts if is_nuts else training
            if method == "noise alone":
                settings, found = {}, functools.partial(noise_alone, measured, name)
            elif is_nuts:
                found = functools.partial(nuts_band, name, seed, **nuts)
            else:
                found = functools.partial(trained_band, name, method, **training)
            measured.measure(
                {"curve": name, "method": method}, found, settings=settings, seed=seed
            )


def nuts_band(
    name: str, seed: int, chains: int, draws: int, burn_in: int, depth: int
) -> dict[str, Any]:
    """Samples the weights by NUTS (Hoffman and Gelman 2014); returns the quantiles.

    The convergence figures are those of the function values on the grid: weights of
    hidden units can be exchanged, function values cannot.
    """
    import tensorflow as tf
    import tensorflow_probability as tfp

    rows, targets = training_rows(name)
    shift, scale = targets.mean(), targets.std()
    x = tf.constant(standard_inputs(name, rows))
    y = tf.constant((targets - shift) / scale, tf.float32)
    noise = curve(name).noise / scale

    def function(whitened: Any, inputs: Any) -> Any:
        """Returns function values, [chains, n], of standard normal weights."""
        first, bias, last, last_bias = tf.split(whitened, [UNITS, UNITS, UNITS, 1], -1)
        hidden = FIRST_SCALE * first[:, tf.newaxis] * inputs
        hidden = tf.tanh(hidden + BIAS_SCALE * bias[:, tf.newaxis])
        values = tf.linalg.matvec(hidden, LAST_SCALE * last)
        return values + BIAS_SCALE * last_bias

    def log_joint(whitened: Any) -> Any:
        residuals = (y - function(whitened, x)) / noise
        squares = tf.reduce_sum(residuals**2, -1) + tf.reduce_sum(whitened**2, -1)
        return -0.5 * squares

    kernel = tfp.mcmc.DualAveragingStepSizeAdaptation(
        tfp.mcmc.NoUTurnSampler(log_joint, step_size=0.05, max_tree_depth=depth),
        num_adaptation_steps=int(0.8 * burn_in),
        target_accept_prob=0.85,
    )

    def trace(_: Any, results: Any) -> tuple[Any, ...]:
        inner = results.inner_results
        return inner.has_divergence, inner.leapfrogs_taken, inner.target_log_prob

    @tf.function(jit_compile=True, autograph=False)
    def sample(start: Any, seed: Any) -> Any:
        return tfp.mcmc.sample_chain(
            draws, start, None, kernel, burn_in, trace_fn=trace, seed=seed
        )

    start = tf.random.stateless_normal([chains, 3 * UNITS + 1], [seed, 1])
    weights, (diverged, leapfrogs, log_probs) = sample(start, tf.constant([seed, 2]))
    grid = tf.constant(standard_inputs(name, curve(name).grid))
    values = tf.map_fn(lambda drawn: function(drawn, grid), weights)
    reduction = tfp.mcmc.potential_scale_reduction(values)
    sizes = tfp.mcmc.effective_sample_size(values, cross_chain_dims=1)
    functions = shift + scale * values.numpy().reshape(-1, GRID)
    return {
        "quantiles": mixture_quantiles(functions, curve(name).noise),
        "largest_r_hat": float(tf.reduce_max(reduction)),
        "r_hat_of_log_joint": float(tfp.mcmc.potential_scale_reduction(log_probs)),
        "least_effective_size": float(tf.reduce_min(sizes)),
        "divergences": int(tf.reduce_sum(tf.cast(diverged, tf.int32))),
        "mean_leapfrogs": float(tf.reduce_mean(tf.cast(leapfrogs, tf.float32))),
    }


def mixture_quantiles(functions: np.ndarray, noise: float) -> np.ndarray:
    """Returns quantiles of function values plus normal noise, [points, levels]."""
    from scipy.stats import norm

    copies = 16
    # Each function value with the same 16 quantiles of the noise.
    noises = noise * norm.ppf((np.arange(copies) + 0.5) / copies)
    noises *= noise / noises.std()
    targets = (functions + noises[:, np.newaxis, np.newaxis]).reshape(-1, GRID)
    return np.quantile(targets, LEVELS, axis=0).T


def trained_band(name: str, method: str, steps: int, draws: int) -> dict[str, Any]:
    """Trains the same network with the same prior; returns the quantiles.

    The members are those of an ensemble whose divergence counts a tenth (temperature
    0.1); the other posteriors are at temperature 1, as the reference.
    """
    import keras
    import tensorflow as tf

    import tfbbb

    keras.utils.set_random_seed(0)
    rows, targets = training_rows(name)
    posterior = "full_covariance_normal" if "full" in method else "mean_field_normal"
    options = {"posterior": posterior, "bias_prior": tfbbb.priors.Normal(BIAS_SCALE)}
    first = tfbbb.priors.Normal(FIRST_SCALE)
    last = tfbbb.priors.Normal(LAST_SCALE)
    inputs = keras.Input((1,))
    hidden = tfbbb.layers.DenseVariational(UNITS, "tanh", prior=first, **options)(
        inputs
    )
    outputs = tfbbb.layers.DenseVariational(1, prior=last, **options)(hidden)
    model = tfbbb.BayesianModel(
        inputs,
        outputs,
        likelihood=tfbbb.likelihoods.Normal(scale=curve(name).noise),
        members=5 if "members" in method else 1,
    )
    temperature = 0.1 if "members" in method else 1.0
    rate = keras.optimizers.schedules.CosineDecay(0.01, steps, alpha=0.01)
    steps_at_once = min(steps, 100)
    model.compile(
        tfbbb.optimizers.Adam(rate),
        kl_schedule=tfbbb.kl_schedules.Tempered(temperature),
        steps_per_execution=steps_at_once,
    )
    model.likelihood.adapt(targets)
    x, y = standard_inputs(name, rows), targets[:, np.newaxis].astype("float32")
    batches = tf.data.Dataset.from_tensors((x, y)).repeat(steps_at_once)
    history = model.fit(
        batches,
        epochs=steps // steps_at_once,
        dataset_size=len(x),
        shuffle=False,
        verbose=0,
    )
    prediction = model.predictive(
        standard_inputs(name, curve(name).grid), num_samples=draws
    )
    return {
        "quantiles": prediction.quantile(LEVELS.tolist())[..., 0],
        "loss": float(history.history["loss"][-1]),
    }


def noise_alone(measured: RecordFile, name: str) -> dict[str, Any]:
    """Returns the quantiles of the reference's mean and the noise: no epistemic part.

    It is what the best network without a posterior could answer.
    """
    (reference,) = measured.select(curve=name, method=REFERENCE)
    mean = np.mean(reference["quantiles"], axis=1)
    return {"quantiles": mixture_quantiles(mean[np.newaxis], curve(name).noise)}


def wasserstein(first: Any, second: Any) -> np.ndarray:
    """Returns the 2-Wasserstein distance of each pair of distributions, [points].

    In one dimension `W_2^2` is the integral of the squared difference of the quantiles
    over their levels.
    """
    difference = np.asarray(first) - np.asarray(second)
    return np.sqrt(np.mean(np.square(difference), axis=1))


def report(measured: RecordFile) -> str:
    """Returns the distances from the reference, and how NUTS converged."""
    parts = []
    for name in FUNCTIONS:
        found = measured.select(curve=name, method=REFERENCE)
        if not found:
            continue
        reference = found[0]["quantiles"]
        low, high = curve(name).inputs
        inside = (curve(name).grid >= low) & (curve(name).grid <= high)
        lines = []
        for method in METHODS[1:]:
            for record in measured.select(curve=name, method=method):
                distances = wasserstein(record["quantiles"], reference)
                width = _width(record["quantiles"]) / _width(reference)
                lines.append(
                    [
                        method,
                        *(
                            f"{distances[part].mean() / curve(name).noise:.3f}"
                            for part in (inside, ~inside)
                        ),
                        *(f"{width[part].mean():.2f}" for part in (inside, ~inside)),
                    ]
                )
        header = [
            "method",
            "W2, among the rows",
            "W2, beyond",
            "width of 90 %, among",
            "width, beyond",
        ]
        parts.append(
            f"{name.capitalize()}: 2-Wasserstein distances from NUTS, in standard "
            f"deviations of the noise ({curve(name).noise:.3g}), and widths of 90 % "
            "intervals over those of NUTS, means over the inputs\n\n"
            f"{markdown_table(header, lines)}"
        )
    lines = [
        [
            f"{record['curve']}, {record['method']}",
            f"{record['largest_r_hat']:.3f}",
            f"{record['r_hat_of_log_joint']:.3f}",
            f"{record['least_effective_size']:.0f}",
            str(record["divergences"]),
            f"{record['mean_leapfrogs']:.0f}",
        ]
        for record in measured.records
        if "largest_r_hat" in record
    ]
    header = [
        "reference",
        "largest R-hat of function values",
        "R-hat of the log density",
        "least effective size",
        "divergences",
        "leapfrog steps per draw",
    ]
    parts.append(markdown_table(header, lines))
    return "\n\n".join(parts)


def compare(measured: RecordFile) -> list[Comparison]:
    """Returns the distances of approximations from NUTS beside that of other chains."""
    found = []
    for reference in measured.select(method=REFERENCE):
        name = reference["curve"]
        distances = {
            record["method"]: wasserstein(
                record["quantiles"], reference["quantiles"]
            ).mean()
            / curve(name).noise
            for record in measured.select(curve=name)
        }
        rival = METHODS[1]
        found += [
            Comparison(
                f"distance of {method} from NUTS",
                name,
                distance,
                distances[rival],
                rival,
                larger_is_better=False,
            )
            for method, distance in distances.items()
            if method not in (REFERENCE, rival, "noise alone")
        ]
    return found


def _width(quantiles: Any) -> np.ndarray:
    """Returns the width of the interval of 90 % at each point."""
    bounds = [np.interp(level, LEVELS, range(len(LEVELS))) for level in (0.05, 0.95)]
    values = np.asarray(quantiles)
    low, high = (
        np.array([np.interp(bound, range(len(LEVELS)), row) for row in values])
        for bound in bounds
    )
    return high - low


def draw(measured: RecordFile) -> Any:
    """Returns the bands of 90 %: a row of panels for each curve."""
    from tfbbb.scores.plots.style import BLUE, DARK, LIGHT

    names = [name for name in FUNCTIONS if measured.select(curve=name)]
    methods = [m for m in METHODS if m not in (METHODS[1], "noise alone")]
    lines, columns = len(names), len(methods)
    figure, grid = panels(lines, columns, (3.2 * columns, 3.0 * lines), sharex="row")
    random = np.random.default_rng(0)
    for name, line in zip(names, grid, strict=True):
        x = curve(name).grid
        truth = FUNCTIONS[name](x[:, np.newaxis], random.normal(size=(GRID, 4000)))
        reference = measured.select(curve=name, method=REFERENCE)
        for method, axes in zip(methods, line, strict=True):
            for record in measured.select(curve=name, method=method):
                axes.fill_between(x, *_band(record), color=BLUE, alpha=0.25, lw=0)
                axes.plot(x, np.mean(record["quantiles"], axis=1), color=BLUE)
            for record in reference if method != REFERENCE else []:
                for bound in _band(record):
                    axes.plot(x, bound, color=DARK, linewidth=0.8, linestyle="--")
            axes.plot(x, truth.mean(axis=1), color=LIGHT, linewidth=1, zorder=0)
            axes.plot(*training_rows(name), "k.", markersize=3)
            axes.set_title(f"{name}: {method}", fontsize="medium")
            if reference:
                low, high = _band(reference[0])
                margin = 0.15 * (high.max() - low.min())
                axes.set_ylim(low.min() - margin, high.max() + margin)
    figure.supxlabel("bands of 90 %; dashed: NUTS; grey: the truth", fontsize="medium")
    return figure


def _band(record: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    quantiles = np.asarray(record["quantiles"])
    low, high = np.searchsorted(LEVELS, [0.05, 0.95])
    return quantiles[:, low], quantiles[:, high]


if __name__ == "__main__":
    main()
