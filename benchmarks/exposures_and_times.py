"""Counts with an exposure, and times that are cut off, beside the known libraries.

    python benchmarks/exposures_and_times.py [--sets rossi,gbsg2] [--methods job,cox]

Counts: two simulations whose exposures differ a thousandfold. Times: four public sets
that lifelines and scikit-survival ship. A job has its defaults, but for the seconds.
"""

import argparse
import functools
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from environments import Peer
from program import add_place_options, add_table_options, argument_parser, run
from records import Measurement, RecordFile
from results import with_error
from timing import markdown_table

COUNTS = ("linear rates", "curved rates")
TIMES = ("rossi", "gbsg2", "whas500", "veterans")
JOB = "job"
OF_COUNTS = (JOB, "glm", "negative binomial", "catboost")
OF_TIMES = (JOB, "cox", "weibull", "forest")
RATES = Peer("fit_rates", ("statsmodels", "catboost", "pandas"))
SURVIVAL = Peer("fit_times", ("lifelines", "scikit-survival", "pandas"))
_SECONDS = 120.0
_SPLITS = 1
_TEST = 0.3


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, and prints both tables of figures."""
    parser = argument_parser(__doc__)
    methods = list(dict.fromkeys([*OF_COUNTS, *OF_TIMES]))
    add_table_options(parser, methods, sets=[*COUNTS, *TIMES], splits=_SPLITS)
    add_place_options(parser)
    run(__file__, parser.parse_args(arguments), measure, report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds the records that the file lacks."""
    wanted = []
    for number in range(1 if options.smoke else options.splits):
        for name in options.sets or [*COUNTS, *TIMES]:
            known, figures = OF_TIMES, figures_of_times
            if name in COUNTS:
                known, figures = OF_COUNTS, figures_of_counts
            wanted += [
                Measurement(
                    {"set": name, "split": number, "method": method},
                    functools.partial(figures, name, number, method, options.smoke),
                    {"max_seconds": _SECONDS if method == JOB else None},
                    number,
                )
                for method in options.methods
                if method in known
            ]
    measured.measure_all(wanted)


def counts(name: str, number: int) -> dict[str, np.ndarray]:
    """Returns 1500 simulated rows: five columns `x`, exposures and counts."""
    generator = np.random.default_rng(number)
    x = generator.normal(size=(1500, 5))
    exposure = np.exp(generator.uniform(0.0, np.log(1000.0), size=1500))
    log_rate = -3.0 + 0.6 * x[:, 0] - 0.4 * x[:, 1]
    if name == "curved rates":
        log_rate = -3.0 + np.sin(2.0 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2]
    rates = np.exp(log_rate) * generator.gamma(5.0, 0.2, size=1500)
    return {"x": x, "exposure": exposure, "y": generator.poisson(rates * exposure)}


def split(number: int, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rows for training, and those of the test."""
    order = np.random.default_rng(100 + number).permutation(num_rows)
    first = int(_TEST * num_rows)
    return np.sort(order[first:]), np.sort(order[:first])


def job(columns: Mapping[str, np.ndarray], train: np.ndarray, **fields: Any) -> Any:
    """Trains a job of the rows for training; returns what it trained and all rows."""
    import pyarrow as pa

    from tfbbb.training import train_table

    table = pa.table(dict(columns))
    return train_table(table.take(train), fields), table


def of_columns(x: np.ndarray) -> dict[str, np.ndarray]:
    """Returns columns by name."""
    return {f"x{place}": column for place, column in enumerate(x.T)}


def training(smoke: bool) -> dict[str, Any]:
    """Returns the options of a training."""
    return {"epochs": 5} if smoke else {"max_seconds": _SECONDS}


def figures_of_counts(
    name: str, number: int, method: str, smoke: bool
) -> dict[str, Any]:
    """Returns deviance per exposure, and how mean and variance are calibrated."""
    rows = counts(name, number)
    train, test = split(number, len(rows["y"]))
    x, e, y = rows["x"], rows["exposure"], rows["y"]
    began = time.perf_counter()
    if method == JOB:
        columns = {**of_columns(x), "exposure": e, "y": y}
        fields = {"target": "y", "exposure": "exposure", "training": training(smoke)}
        trained, table = job(columns, train, **fields)
        inputs = trained.schema.inputs(table.take(test))
        found = trained.model.predictive(inputs)
        mean, variance = found.mean[:, 0], found.variance[:, 0]
        seconds = time.perf_counter() - began
    else:
        of_test = {"x_test": x[test], "e_test": e[test]}
        of_train = {"x_train": x[train], "e_train": e[train], "y_train": y[train]}
        answer = RATES.run(method=method, **of_train, **of_test)
        mean, variance = answer["mean"], answer["variance"]
        seconds = float(answer["seconds"])
    y, e = y[test], e[test]
    logs = np.where(y > 0, y * np.log(np.maximum(y, 1) / mean), 0.0)
    deciles = np.array_split(np.argsort(e), 10)
    ratios = [y[some].sum() / mean[some].sum() for some in deciles]
    return {
        "deviance_per_exposure": 2.0 * float((logs - y + mean).sum() / e.sum()),
        "worst_decile": float(np.max(np.abs(np.log(np.maximum(ratios, 1e-3))))),
        "squared_errors_per_variance": float(np.mean(np.square(y - mean) / variance)),
        "seconds": seconds,
    }


def figures_of_times(
    name: str, number: int, method: str, smoke: bool
) -> dict[str, Any]:
    """Returns concordance, integrated Brier score and calibration at three times."""
    from tfbbb.prediction.survival_scores import (
        brier_of_rows,
        concordance_of_times,
        kaplan_meier,
        scored_times,
        step,
    )

    given = SURVIVAL.run(set=name)
    x, times, events = given["x"], np.maximum(given["times"], 0.5), given["events"]
    train, test = split(number, len(times))
    targets = np.stack([times, events], axis=1)[test]
    at = scored_times(targets)
    began = time.perf_counter()
    if method == JOB:
        columns = {**of_columns(x), "time": times, "event": events}
        fields = {"target": "time", "event": "event", "training": training(smoke)}
        trained, table = job(columns, train, **fields)
        inputs = trained.schema.inputs(table.take(test))
        found = trained.model.predictive(inputs)
        survival, order = found.survival(at)[..., 0], found.mean[:, 0]
        seconds = time.perf_counter() - began
    else:
        of_train = {"x_train": x[train], "times": times[train], "events": events[train]}
        answer = SURVIVAL.run(method=method, **of_train, x_test=x[test], at=at)
        survival, order = answer["survival"], answer["order"]
        seconds = float(answer["seconds"])
    # Beside what the curve of the test says, at its quarter, half and three quarters.
    curve = step(kaplan_meier(targets[:, 0], targets[:, 1] == 1.0), at)
    places = [len(at) // 4, len(at) // 2, 3 * len(at) // 4]
    gaps = np.abs(survival.mean(axis=0) - curve)[places]
    return {
        "concordance": concordance_of_times(order, targets),
        "integrated_brier_score": float(brier_of_rows(survival, targets).mean()),
        "worst_gap": float(gaps.max()),
        "seconds": seconds,
    }


def report(measured: RecordFile) -> str:
    """Returns both tables of figures."""
    tables = []
    for names, methods, figures in (
        (
            COUNTS,
            OF_COUNTS,
            {
                "deviance per exposure": "deviance_per_exposure",
                "worst decile of exposure, log ratio": "worst_decile",
                "squared error per variance": "squared_errors_per_variance",
            },
        ),
        (
            TIMES,
            OF_TIMES,
            {
                "concordance": "concordance",
                "integrated Brier score": "integrated_brier_score",
                "worst gap at three times": "worst_gap",
            },
        ),
    ):
        rows = []
        for name in names:
            for method in methods:
                found = measured.select(set=name, method=method)
                if found:
                    cells = [
                        with_error([record[figure] for record in found], 4)
                        for figure in (*figures.values(), "seconds")
                    ]
                    rows.append([name, method, *cells])
        tables.append(markdown_table(["table", "method", *figures, "seconds"], rows))
    return "\n\n".join(tables)


if __name__ == "__main__":
    main()
