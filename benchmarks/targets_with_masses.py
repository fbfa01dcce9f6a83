"""Amounts that are often 0, shares with ends, grades and two modes, beside others.

    python benchmarks/targets_with_masses.py [--sets claims,ratings] [--methods job]

Every method gives 200 draws of each row of a test, by which it is scored: the
continuous or ranked probability score, the gap between the predicted and the true share
of the least target, and how many targets are below the quantile of 95 %.
"""

import argparse
import functools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from environments import Peer
from program import add_place_options, add_table_options, argument_parser, run
from records import Measurement, RecordFile
from results import with_error
from timing import markdown_table

JOB, ORACLE = "job", "oracle"
# Which methods suit a set: the truth is known of all of them.
SETS = {
    "claims": (JOB, "catboost_tweedie", "lightgbm_tweedie", "ngboost", ORACLE),
    "shares": (JOB, "logit_regression", "ngboost", ORACLE),
    "ratings": (JOB, "ordered_model", "catboost_classes", ORACLE),
    "two lines": (JOB, "ngboost", ORACLE),
    "one line": (JOB, "ngboost", ORACLE),
}
PEER = Peer(
    "fit_masses", ("catboost", "lightgbm", "ngboost", "statsmodels", "pandas", "scipy")
)
_ROWS, _DRAWS, _SPLITS = 3000, 200, 1
_TRAIN = 2000


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, and prints a table for each set."""
    parser = argument_parser(__doc__)
    methods = list(dict.fromkeys(method for each in SETS.values() for method in each))
    add_table_options(parser, methods, sets=list(SETS), splits=_SPLITS)
    add_place_options(parser)
    run(__file__, parser.parse_args(arguments), measure, report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds the records that the file lacks."""
    measured.measure_all(
        [
            Measurement(
                {"set": name, "split": number, "method": method},
                functools.partial(figures, name, number, method, options.smoke),
                seed=number,
            )
            for number in range(1 if options.smoke else options.splits)
            for name in options.sets or SETS
            for method in options.methods
            if method in SETS[name]
        ]
    )


def rows_of(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns five columns, targets, and 200 draws of the truth for each row."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(_ROWS, 5))
    f = np.sin(1.5 * x[:, 0]) + 0.5 * x[:, 1]
    size = (_DRAWS + 1, _ROWS)
    if name == "claims":
        is_zero = generator.uniform(size=size) < 1.0 / (1.0 + np.exp(x[:, 2] - 1.0))
        amounts = np.exp(6.0 + 0.7 * f) * generator.gamma(1.5, 1.0 / 1.5, size)
        drawn = np.where(is_zero, 0.0, amounts)
    elif name == "shares":
        logits = np.stack([x[:, 2] - 1.5, 0.5 * f - 1.0, np.zeros(_ROWS)], axis=1)
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        place = generator.uniform(size=size)
        mean = 1.0 / (1.0 + np.exp(-f))
        inside = generator.beta(6.0 * mean, 6.0 * (1.0 - mean), size)
        drawn = np.where(place < shares[:, 0] + shares[:, 1], 1.0, inside)
        drawn = np.where(place < shares[:, 0], 0.0, drawn)
    elif name == "ratings":
        latent = 2.0 * f + generator.logistic(size=size)
        drawn = 1.0 + np.digitize(latent, [-2.0, -1.2, 0.3, 1.0])
    else:
        sides = generator.choice([-1.0, 1.0], size) if name == "two lines" else 1.0
        drawn = sides * (2.0 + f) + 0.3 * generator.normal(size=size)
    return x, drawn[0], drawn[1:].T


def figures(name: str, seed: int, method: str, smoke: bool) -> dict[str, Any]:
    """Returns the scores of a method on the rows after those for training."""
    x, y, truth = rows_of(name, seed)
    began = time.perf_counter()
    if method == ORACLE:
        draws = truth[_TRAIN:]
    elif method == JOB:
        draws = draws_of_job(x, y, smoke)
    else:
        answer = PEER.run(
            method=method, x_train=x[:_TRAIN], y_train=y[:_TRAIN], x_test=x[_TRAIN:]
        )
        draws = answer["draws"]
    seconds = time.perf_counter() - began
    true, least = y[_TRAIN:], y.min()
    upper = np.quantile(draws, 0.95, axis=1)
    return {
        "score": float(crps(draws, true).mean()),
        "gap_of_least": float(np.mean(draws <= least) - np.mean(true <= least)),
        "below_95": float(np.mean(true <= upper)),
        "seconds": seconds,
    }


def draws_of_job(x: np.ndarray, y: np.ndarray, smoke: bool) -> np.ndarray:
    """Trains a job with its defaults; returns [rows, draws]."""
    import pyarrow as pa

    from tfbbb.training import train_table

    table = pa.table({"y": y, **{f"x{place}": c for place, c in enumerate(x.T)}})
    training = {"epochs": 5} if smoke else {}
    fields = {"target": "y", "task": "regression", "training": training}
    trained = train_table(table.slice(0, _TRAIN), fields)
    inputs = trained.schema.inputs(table.slice(_TRAIN))
    return np.asarray(trained.model.predictive(inputs).sample(_DRAWS))[..., 0].T


def crps(draws: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Returns the score of each row; of grades it is the ranked probability score."""
    number = draws.shape[1]
    ordered = np.sort(draws, axis=1)
    weights = 2.0 * np.arange(1, number + 1) - number - 1.0
    # The mean of |a - b| over all pairs of different draws.
    between = 2.0 * (ordered @ weights) / (number * (number - 1.0))
    return np.abs(draws - true[:, np.newaxis]).mean(axis=1) - 0.5 * between


def report(measured: RecordFile) -> str:
    """Returns a table for each set."""
    columns = {
        "score": "score",
        "gap of the least target's share": "gap_of_least",
        "below the 95 % quantile": "below_95",
        "seconds": "seconds",
    }
    tables = []
    for name, methods in SETS.items():
        rows = []
        for method in methods:
            found = measured.select(set=name, method=method)
            if found:
                values = [[each[key] for each in found] for key in columns.values()]
                rows.append([method, *(with_error(each) for each in values)])
        if rows:
            tables.append(f"{name}\n\n{markdown_table(['method', *columns], rows)}")
    return "\n\n".join(tables)


if __name__ == "__main__":
    main()
