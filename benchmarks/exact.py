"""Regressions of known posterior: the ELBO beside the exact evidence, size by size."""

import argparse
import functools
import itertools
import math
import statistics
from collections.abc import Sequence

import numpy as np
from program import argument_parser, run
from records import RecordFile
from timing import markdown_table

NOISE, PRIOR_SCALE, ROWS = 0.3, 1.0, 40
POSTERIORS = ("full_covariance_normal", "mean_field_normal")
# The largest number of columns, and the number that the targets were made of.
LARGEST = {"polynomial": 8, "linear": 7}
TRUE_SIZE = {"polynomial": 3, "linear": 4}
STEPS = 4000


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains posteriors of regressions of all sizes, and compares ELBO and evidence."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--tables", type=int, default=3, help="tables drawn for each regression"
    )
    run(__file__, parser.parse_args(arguments), measure, report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds a record for each regression, table, size and posterior."""
    smoke = options.smoke
    steps = STEPS // 6 if smoke else STEPS
    for task in list(LARGEST)[: 1 if smoke else None]:
        for table, size, posterior in itertools.product(
            range(1 if smoke else options.tables),
            [2] if smoke else range(1, LARGEST[task] + 1),
            POSTERIORS,
        ):
            key = {"task": task, "table": table, "size": size, "posterior": posterior}
            measured.measure(
                key,
                functools.partial(compared, **key, steps=steps),
                settings={"steps": steps, "rows": ROWS},
                seed=table,
            )


def rows(task: str, table: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns all columns [rows, largest + 1 or largest] and targets [rows].

    The columns of a polynomial are 1, x, x^2, ...; those of a linear regression are
    correlated normals, of which the targets need the first ones.
    """
    random = np.random.default_rng([table, len(task)])
    largest, true = LARGEST[task], TRUE_SIZE[task]
    if task == "polynomial":
        x = random.uniform(-1.0, 1.0, ROWS)
        columns = x[:, np.newaxis] ** np.arange(largest + 1)
        weights = random.choice([-1.0, 1.0], true + 1) * random.uniform(
            0.8, 1.6, true + 1
        )
    else:
        mixing = np.eye(largest) + 0.5 * random.normal(size=(largest, largest))
        columns = random.normal(size=(ROWS, largest)) @ mixing / math.sqrt(largest)
        weights = random.choice([-1.0, 1.0], true) * random.uniform(0.5, 1.5, true)
    targets = columns[:, : len(weights)] @ weights
    return columns, targets + NOISE * random.normal(size=ROWS)


def design(task: str, table: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the columns of one size and the targets: size 3 is a cubic."""
    columns, targets = rows(task, table)
    return columns[:, : size + (task == "polynomial")], targets


def exact_evidence(columns: np.ndarray, targets: np.ndarray) -> float:
    """Returns log N(y; 0, NOISE^2 I + PRIOR_SCALE^2 X X^T), in nats."""
    from tfbbb.lab.evidence import linear_log_evidence

    return linear_log_evidence(
        columns, targets, noise_scale=NOISE, prior_covariance=PRIOR_SCALE**2
    )


def least_gap(columns: np.ndarray, posterior: str) -> float:
    """Returns the least gap between ELBO and evidence that a posterior can have.

    The exact posterior has the precision P = X^T X / NOISE^2 + 1 / PRIOR_SCALE^2. The
    best factorised normal has its mean and the variances 1 / diag(P), which leaves
    KL = (sum log diag P - log det P) / 2 (Bishop 2006, section 10.1.2).
    """
    if posterior == "full_covariance_normal":
        return 0.0
    precision = columns.T @ columns / NOISE**2
    precision += np.eye(columns.shape[1]) / PRIOR_SCALE**2
    diagonal = np.log(np.diag(precision)).sum()
    return float(0.5 * (diagonal - np.linalg.slogdet(precision)[1]))


def compared(
    task: str, table: int, size: int, posterior: str, steps: int
) -> dict[str, float]:
    """Trains one posterior; returns its ELBO and the exact evidence, in nats."""
    columns, targets = design(task, table, size)
    return {
        "elbo": trained_elbo(columns, targets, posterior, steps, seed=table),
        "log_evidence": exact_evidence(columns, targets),
        "least_gap": least_gap(columns, posterior),
    }


def trained_elbo(
    columns: np.ndarray, targets: np.ndarray, posterior: str, steps: int, seed: int
) -> float:
    """Returns the ELBO of a layer that `fit` has trained, in nats."""
    import keras
    import tensorflow as tf

    import tfbbb
    from tfbbb.bayes.divergences import kl_divergence

    keras.utils.set_random_seed(seed)
    layer = tfbbb.layers.DenseVariational(
        1,
        use_bias=False,
        posterior=posterior,
        prior=tfbbb.priors.Normal(PRIOR_SCALE),
        estimator=tfbbb.estimators.Weight(num_samples=8)
        if posterior == "full_covariance_normal"
        else "local",
    )
    inputs = keras.Input(columns.shape[1:])
    likelihood = tfbbb.likelihoods.Normal(scale=NOISE, standardize=False)
    model = tfbbb.BayesianModel(inputs, layer(inputs), likelihood=likelihood)
    # The rate falls so that the noise of the gradient averages out.
    rate = keras.optimizers.schedules.CosineDecay(0.03, steps, alpha=1e-3)
    model.compile(tfbbb.optimizers.Adam(rate), steps_per_execution=100)
    x, y = columns.astype("float32"), targets[:, np.newaxis].astype("float32")
    steps_at_once = 100
    batches = tf.data.Dataset.from_tensors((x, y)).repeat(steps_at_once)
    model.fit(
        batches.prefetch(1),
        epochs=steps // steps_at_once,
        dataset_size=len(x),
        shuffle=False,
        verbose=0,
    )
    # E_q[log p(y | w)] + log-likelihood of the mean, less the spread: in closed form.
    mean = np.asarray(layer.kernel.mean, np.float64)
    noise_shape = layer.kernel.posterior.noise_shape(layer.kernel.shape)
    unit = np.eye(math.prod(noise_shape)).reshape(-1, *noise_shape).astype("float32")
    # Columns whose outer products sum to the covariance of q.
    root = np.asarray(layer.kernel.perturb(tf.constant(unit)), np.float64)[..., 0]
    squares = np.sum((targets - columns @ mean[:, 0]) ** 2)
    squares += np.sum((columns @ root.T) ** 2)
    normalizer = len(targets) * math.log(2.0 * math.pi * NOISE**2)
    expected = -0.5 * (squares / NOISE**2 + normalizer)
    return float(expected - float(kl_divergence(layer.kernel, None)))


def report(measured: RecordFile) -> str:
    """Returns the gaps of ELBO and evidence, and how often both choose one size."""
    rows = []
    for task, posterior in itertools.product(LARGEST, POSTERIORS):
        records = measured.select(task=task, posterior=posterior)
        if not records:
            continue
        chosen = []
        for table in sorted({record["table"] for record in records}):
            sizes = [record for record in records if record["table"] == table]
            best = (max(sizes, key=lambda r: r[x]) for x in ("elbo", "log_evidence"))
            chosen.append(len({record["size"] for record in best}) == 1)
        gaps = [record["log_evidence"] - record["elbo"] for record in records]
        least = [record["least_gap"] for record in records]
        above = max(gap - best for gap, best in zip(gaps, least, strict=True))
        rows.append(
            [
                f"{task}, {posterior}",
                f"{statistics.fmean(gaps):.3f}",
                *(f"{value:.3f}" for value in (max(gaps), max(least), above)),
                f"{sum(chosen)} of {len(chosen)} tables",
            ]
        )
    columns = [
        "regression, posterior",
        "mean gap, nats",
        "largest",
        "largest of the best posterior",
        "largest above it",
        "the same size is chosen",
    ]
    return markdown_table(columns, rows)


if __name__ == "__main__":
    main()
