"""Twenty trained networks beside their Bayesian twins by `tfbbb.convert`."""

import argparse
import functools
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from program import (
    add_names_option,
    argument_parser,
    positive_integer,
    run,
)
from records import Measurement, RecordFile
from timing import markdown_table

ROWS, EPOCHS, MORE_EPOCHS, BATCH_SIZE = 1200, 30, 9, 32
NETWORK, LONGER = "network", "network, trained on"
TWIN, LAST, HOTTER = "twin", "twin, last layer", "twin, temperature 1"
METHODS = (NETWORK, LONGER, TWIN, LAST, HOTTER)
# By how much the error of a twin may be larger.
MARGIN = 0.003
# Whether smaller figures are better, and the margin.
FIGURES = {
    "log_likelihood": (-1.0, 0.0),
    "error": (1.0, MARGIN),
    "calibration_error": (1.0, 0.0),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains networks and their twins, and scores them on other rows."""
    from converted_networks import NETWORKS

    parser = argument_parser(__doc__)
    add_names_option(parser, "networks", NETWORKS)
    parser.add_argument(
        "--seeds", type=positive_integer, default=2, help="splits and starts of each"
    )
    run(__file__, parser.parse_args(arguments), measure, report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds a record for each seed, network and method."""
    smoke = options.smoke
    epochs, more = (1, 1) if smoke else (EPOCHS, MORE_EPOCHS)
    measured.measure_all(
        [
            Measurement(
                {"network": name, "seed": seed, "method": method},
                functools.partial(scored, name, seed, method, epochs, more),
                settings={"rows": ROWS, "epochs": epochs, "more_epochs": more},
                seed=seed,
            )
            for seed in range(1 if smoke else options.seeds)
            for name in options.networks[: 2 if smoke else None]
            for method in ((NETWORK, TWIN) if smoke else METHODS)
        ]
    )


def scored(
    name: str, seed: int, method: str, epochs: int, more: int
) -> dict[str, float]:
    """Returns the scores of one model on the rows that it was not trained on."""
    import keras

    import tfbbb

    described, network, seconds = trained(name, seed, epochs)
    (x, y), (x_test, y_test) = split(name, seed)
    several = len(described.likelihoods) > 1
    likelihood = list(described.likelihoods) if several else described.likelihoods[0]
    options: dict[str, Any] = {}
    if method == LONGER:
        longer = described.make()
        longer.set_weights(network.get_weights())
        longer.compile("adam", described.losses)
        seconds = fit_seconds(longer, x, y, more)
        network = longer
    if method in (NETWORK, LONGER):
        options = {"posterior": "point", "bias_posterior": "point"}
    elif several:
        options = {"kl_weight": (1.0 if method == HOTTER else 0.1) / ROWS}
    keras.utils.set_random_seed(seed)
    twin = tfbbb.convert(
        network,
        where="last" if method == LAST else "all",
        likelihood=likelihood,
        **options,
    )
    if method in (NETWORK, LONGER):
        if likelihood == "normal":
            # Of maximum likelihood: that of the residuals of all training rows.
            residuals = y - network.predict(x, verbose=0)
            twin.likelihood.adapt(y)
            twin.likelihood.start_noise(residuals[np.newaxis])
    else:
        if several:
            losses = [tfbbb.losses.NegativeLogLikelihood(each) for each in likelihood]
            twin.compile("adam", losses)
        else:
            schedule = "constant" if method == HOTTER else None
            twin.compile("adam", kl_schedule=schedule)
        seconds = fit_seconds(twin, x, y, more)
    found = tfbbb.predictive(twin, x_test, likelihood=likelihood if several else None)
    scores = [
        prediction_scores(*each)
        for each in zip(
            found if several else [found],
            y_test if several else [y_test],
            described.likelihoods,
            strict=True,
        )
    ]
    mean = {key: statistics.fmean(one[key] for one in scores) for key in scores[0]}
    return {**mean, "seconds": seconds}


@functools.lru_cache(maxsize=1)
def trained(name: str, seed: int, epochs: int) -> tuple[Any, Any, float]:
    """Returns a network's description, the trained network, and its seconds."""
    import keras
    from converted_networks import NETWORKS

    described = NETWORKS[name]
    (x, y), _ = split(name, seed)
    keras.utils.clear_session()
    keras.utils.set_random_seed(seed)
    network = described.make()
    network.compile("adam", described.losses)
    return described, network, fit_seconds(network, x, y, epochs)


def fit_seconds(model: Any, x: Any, y: Any, epochs: int) -> float:
    """Trains a model; returns the seconds."""
    begin = time.perf_counter()
    model.fit(x, y, epochs=epochs, batch_size=BATCH_SIZE, verbose=0)
    return time.perf_counter() - begin


def split(name: str, seed: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Returns training rows and test rows, inputs and targets each."""
    from converted_networks import NETWORKS

    x, y = NETWORKS[name].data()
    total = len(y[0] if isinstance(y, list) else y)
    order = np.random.default_rng(seed).permutation(total)

    def taken(arrays: Any, rows: np.ndarray) -> Any:
        if isinstance(arrays, list):
            return [array[rows] for array in arrays]
        return arrays[rows]

    train, test = order[:ROWS], order[ROWS:]
    return (taken(x, train), taken(y, train)), (taken(x, test), taken(y, test))


def prediction_scores(
    prediction: Any, y: np.ndarray, likelihood: str
) -> dict[str, float]:
    """Returns the scores of the distributions of one target."""
    from tfbbb import metrics

    log_likelihood = float(np.mean(prediction.log_prob(y)))
    if likelihood == "normal":
        levels = np.arange(0.05, 1.0, 0.1)
        below = np.asarray(prediction.cdf(y))
        gaps = [abs(level - float(np.mean(below <= level))) for level in levels]
        error, calibration = (
            float(metrics.root_mean_squared_error(prediction, y)),
            (statistics.fmean(gaps)),
        )
    else:
        probabilities = np.asarray(prediction.probabilities)
        classes = np.reshape(y, probabilities.shape[:-1])
        error = float(np.mean(probabilities.argmax(axis=-1) != classes))
        calibration = float(metrics.expected_calibration_error(prediction, y))
    return {
        "log_likelihood": log_likelihood,
        "error": error,
        "calibration_error": calibration,
    }


def report(measured: RecordFile) -> str:
    """Returns the held-out log-likelihoods, and how many twins are no worse."""
    networks = dict.fromkeys(record["network"] for record in measured.records)
    means = {
        network: {
            method: {
                figure: statistics.fmean(record[figure] for record in found)
                for figure in (*FIGURES, "seconds")
            }
            for method in METHODS
            if (found := measured.select(network=network, method=method))
        }
        for network in networks
    }
    rows = [
        [
            network,
            *(
                f"{of[method]['log_likelihood']:.3f}" if method in of else ""
                for method in METHODS
            ),
        ]
        for network, of in means.items()
    ]
    pairs = [of for of in means.values() if NETWORK in of and TWIN in of]
    better, right, calibrated = (
        sum(sign * (of[NETWORK][x] - of[TWIN][x]) + margin >= 0.0 for of in pairs)
        for x, (sign, margin) in FIGURES.items()
    )
    times = [
        of[TWIN]["seconds"] / of[LONGER]["seconds"] for of in pairs if LONGER in of
    ]
    lines = [
        f"Of {len(pairs)} twins, {better} have at least the log-likelihood of the "
        f"network, {right} at most {MARGIN} more errors, and {calibrated} at most its "
        "calibration error."
    ]
    if times:
        ratio = statistics.median(times)
        lines.append(
            f"A twin trains {ratio:.1f} times as long per epoch, in the median."
        )
    table = markdown_table(["held-out log-likelihood", *METHODS], rows)
    return f"{table}\n\n{' '.join(lines)}"


if __name__ == "__main__":
    main()
