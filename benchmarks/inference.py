"""Ways to a posterior over one network: scores, distance from NUTS, time, memory.

    python benchmarks/inference.py --data DIR [--sets yacht] [--methods NUTS]

Every method gets the same network, 50 rectified units between standardised inputs and a
learned noise, with the prior N(0, 1 / fan-in), and the training rows of a split of
`uci`, or of a toy curve. NUTS is the reference: the distance of a method is the mean
2-Wasserstein distance of its predictive distributions of test rows from those of NUTS,
in standard deviations of the target.

    python benchmarks/inference.py --data DIR --methods PBP --splits 20

measures PBP on all standard splits, beside the tables of its paper. The tables of all
methods take the splits on which NUTS was measured.
"""

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from curves import CURVES
from program import add_table_options, argument_parser, run
from records import RecordFile
from results import published_score, with_error
from scores import prediction_scores
from standard_splits import find_tables
from timing import markdown_table

UNITS = 50
REFERENCE = "NUTS"
# Quantiles that stand for a distribution, and rows whose quantiles are recorded.
LEVELS = (np.arange(32) + 0.5) / 32
_ROWS = 40
_STEPS = 5000
# An epoch of a few rows costs Keras far more than its steps.
_MOST_EPOCHS = 1000
_DROPOUT_RATE = 0.05
# Published figures of networks with these units, means over 20 splits.
_PUBLISHED = {REFERENCE: "HMC", "PBP": "PBP"}


def _epochs(num_rows: int, steps: int) -> int:
    """Returns the epochs of batches of 32 rows that take about so many steps."""
    return min(max(1, round(steps / -(-num_rows // 32))), _MOST_EPOCHS)


def _trained(name: str, **arguments: Any) -> Callable[..., Any]:
    """Returns a method that trains from the initial weights."""

    def fit(model: Any, x: Any, y: Any, steps: int) -> Any:
        from tfbbb import inference

        epochs = _epochs(len(x), steps)
        method = getattr(inference, name)(epochs=epochs, **arguments)
        return method.fit(model, x, y, verbose=0)

    return fit


def _after_map(name: str, *given: Any, **arguments: Any) -> Callable[..., Any]:
    """Returns a method that starts at the mode of the posterior."""

    def fit(model: Any, x: Any, y: Any, steps: int) -> Any:
        from tfbbb import inference

        mode = _trained("MAP")(model, x, y, steps)
        method = getattr(inference, name)(*given, **arguments)
        return method.fit(mode, x, y, verbose=0)

    return fit


def _by_fit(posterior: str) -> Callable[..., Any]:
    """Returns Bayes by backprop with this posterior."""

    def fit(model: Any, x: Any, y: Any, steps: int) -> Any:
        import keras

        import tfbbb
        from tfbbb.model.conversion import with_posterior

        variational = with_posterior(model, posterior)
        epochs = _epochs(len(x), steps)
        rate = keras.optimizers.schedules.CosineDecay(0.01, steps, alpha=0.01)
        variational.compile(tfbbb.optimizers.Adam(rate))
        variational.fit(x, y, epochs=epochs, batch_size=32, verbose=0)
        return variational

    return fit


def _nuts(model: Any, x: Any, y: Any, steps: int) -> Any:
    from tfbbb import inference

    draws = 500 if steps == _STEPS else 50
    method = inference.NUTS(num_draws=draws, num_warmup=draws, max_tree_depth=8)
    return method.fit(model, x, y, verbose=0)


def _cyclical(name: str) -> Callable[..., Any]:
    """Returns a method whose chains go through cycles of steps."""

    def fit(model: Any, x: Any, y: Any, steps: int) -> Any:
        from tfbbb import inference

        cycles = 5
        method = getattr(inference, name)(
            num_cycles=cycles, steps_per_cycle=steps // cycles
        )
        return method.fit(model, x, y, verbose=0)

    return fit


def _pbp(model: Any, x: Any, y: Any, steps: int) -> Any:
    from tfbbb.lab import inference

    method = inference.PBP(epochs=40 if steps == _STEPS else 2)
    return method.fit(model, x, y, verbose=0)


METHODS: dict[str, Callable[..., Any]] = {
    REFERENCE: _nuts,
    "maximum likelihood": _trained("MaximumLikelihood"),
    "MAP": _trained("MAP"),
    "mean field": _by_fit("mean_field_normal"),
    "full covariance per tensor": _by_fit("full_covariance_normal"),
    "Laplace diagonal": _after_map("Laplace", "diagonal"),
    "Laplace Kronecker": _after_map("Laplace", "kron"),
    "Laplace last layer": _after_map("Laplace", "full", subset="last_layer"),
    "Laplace full": _after_map("Laplace", "full"),
    "PBP": _pbp,
    "IVON": _trained("IVON"),
    "SWAG": _trained("SWAG"),
    "SGHMC": _cyclical("SGHMC"),
    "SGLD": _cyclical("SGLD"),
    "MC dropout": _trained("MCDropout"),
    "deep ensemble": _trained("DeepEnsemble"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits each method to each split, prints the tables and writes the records."""
    parser = argument_parser(__doc__)
    add_table_options(parser, tuple(METHODS), splits=1)
    run(__file__, parser.parse_args(arguments), measure, report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds one record per set, method and split; the reference comes first."""
    steps = 100 if options.smoke else _STEPS
    cases: list[tuple[str, int, Callable[[], Any]]] = [
        (name, 0, functools.partial(_curve_rows, name))
        for name in options.sets or CURVES
        if name in CURVES
    ]
    others = options.sets and [name for name in options.sets if name not in CURVES]
    tables = [] if others == [] else find_tables(options.data, others)
    for table in tables:
        splits = range(table.num_splits)[: 1 if options.smoke else options.splits]
        cases += [
            (
                table.name,
                split,
                functools.partial(_split_rows, table, split, options.smoke),
            )
            for split in splits
        ]
    for name, split, rows in cases:
        for method in sorted(options.methods, key=lambda m: m != REFERENCE):
            key = {"set": name, "method": method, "split": split}
            measured.measure(
                key,
                functools.partial(fit_and_score, method, rows, split, steps),
                settings={"steps": steps},
                seed=split,
            )


def _split_rows(table: Any, index: int, smoke: bool) -> tuple[np.ndarray, ...]:
    split = table.split(index, smoke=smoke)
    shift, scale = split.x_train.mean(axis=0), split.x_train.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    return (
        ((split.x_train - shift) / scale).astype("float32"),
        split.y_train[:, np.newaxis],
        ((split.x_test - shift) / scale).astype("float32"),
        split.y_test,
    )


def _curve_rows(name: str) -> tuple[np.ndarray, ...]:
    x, y = CURVES[name].training_rows()
    x_test, y_test = CURVES[name].test_rows()
    standard, standard_test = (
        ((inputs - x.mean()) / x.std())[:, np.newaxis].astype("float32")
        for inputs in (x, x_test)
    )
    return standard, y[:, np.newaxis], standard_test, y_test


def network(num_inputs: int, seed: int, *, dropout: bool) -> Any:
    """Returns the network that all methods get, with point posteriors."""
    import keras

    import tfbbb

    keras.utils.set_random_seed(seed)
    layer = {
        "posterior": "point",
        "bias_posterior": "point",
        "prior": "normal",
        "bias_prior": "normal",
    }
    inputs = keras.Input((num_inputs,))
    hidden = tfbbb.layers.DenseVariational(UNITS, activation="relu", **layer)(inputs)
    if dropout:
        hidden = keras.layers.Dropout(_DROPOUT_RATE)(hidden)
    outputs = tfbbb.layers.DenseVariational(1, **layer)(hidden)
    return tfbbb.BayesianModel(inputs, outputs)


def fit_and_score(
    method: str, rows: Callable[[], tuple[np.ndarray, ...]], seed: int, steps: int
) -> dict[str, Any]:
    """Fits one method and scores its predictions of the test rows."""
    x, y, x_test, y_test = rows()
    dropout = method == "MC dropout"
    model = network(x.shape[1], seed, dropout=dropout)
    before = _reset_peak()
    start = time.perf_counter()
    posterior = METHODS[method](model, x, y, steps)
    seconds = time.perf_counter() - start
    # The kernel counts pages in batches, so a small peak may come out below 0.
    peak = max(_memory("VmHWM") - before, 0.0)
    prediction = posterior.predictive(x_test, 400, include_dropout=dropout)
    chosen = np.linspace(0, len(x_test) - 1, min(_ROWS, len(x_test))).astype(int)
    quantiles = prediction.quantile(LEVELS.tolist())[chosen, :, 0]
    return {
        **prediction_scores(prediction, y_test, whole_numbers=False),
        "seconds": seconds,
        "peak_mib": peak,
        "log_evidence": posterior.log_evidence,
        "diagnostics": {
            name: value
            for name, value in posterior.diagnostics.items()
            if isinstance(value, int | float)
        },
        "target_scale": float(y.std()),
        "quantiles": np.asarray(quantiles, float).round(4).tolist(),
    }


def _reset_peak() -> float:
    """Starts the peak of memory again; returns the memory in use, in MiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _memory(name: str) -> float:
    """Returns a figure of this process from the kernel, in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise OSError(f"The kernel gives no {name}.")


def distance(record: dict[str, Any], reference: dict[str, Any]) -> float:
    """Returns the mean 2-Wasserstein distance of rows, in deviations of the target."""
    gap = np.asarray(record["quantiles"]) - np.asarray(reference["quantiles"])
    return float(np.sqrt((gap**2).mean(axis=1)).mean() / reference["target_scale"])


def report(measured: RecordFile) -> str:
    """Returns the log-likelihood and the distance from NUTS by method and set.

    All methods are on the splits of NUTS, and PBP on all splits below them.
    """
    sets = [*dict.fromkeys(record["set"] for record in measured.records)]
    rows = []
    for method in METHODS:
        by_set = [_of_reference(measured, name, method) for name in sets]
        records = [record for found in by_set for record in found]
        if not records:
            continue
        cells = [_cell(measured, *pair) for pair in zip(sets, by_set, strict=True)]
        tables = [record for record in records if record["set"] not in CURVES]
        rows.append(
            [
                method,
                *cells,
                with_error([r["coverage_90"] for r in tables], 0, 100.0),
                f"{statistics.median(r['seconds'] for r in records):.1f}",
                f"{statistics.median(r['peak_mib'] for r in records):.0f}",
            ]
        )
        if method in _PUBLISHED:
            rows += _beside_the_paper(measured, method, sets)
    columns = ["log-likelihood (distance from NUTS)", *sets]
    columns += ["90 % intervals of the tables cover, %", "seconds", "MiB"]
    return markdown_table(columns, rows)


def _of_reference(measured: RecordFile, name: str, method: str) -> list[dict[str, Any]]:
    """Returns the records of a method on the splits of NUTS, on all without NUTS."""
    splits = {r["split"] for r in measured.select(set=name, method=REFERENCE)}
    records = measured.select(set=name, method=method)
    return [r for r in records if not splits or r["split"] in splits]


def _cell(measured: RecordFile, name: str, records: list[dict[str, Any]]) -> str:
    """Returns the log-likelihood of records, and their distance from NUTS."""
    text = with_error([record["log_likelihood"] for record in records])
    distances = [
        distance(record, reference)
        for record in records
        for reference in measured.select(
            set=name, method=REFERENCE, split=record["split"]
        )
        if reference is not record
    ]
    return f"{text} ({with_error(distances, 3)})" if distances else text


def _beside_the_paper(
    measured: RecordFile, method: str, sets: Sequence[str]
) -> list[list[str]]:
    """Returns a method's scores on all splits, and those of its paper."""
    ours, theirs = [], []
    for name in sets:
        records = measured.select(set=name, method=method)
        several = [r["log_likelihood"] for r in records] if len(records) > 1 else []
        paper = published_score(_PUBLISHED[method], "log_likelihood", name)
        ours.append(with_error(several))
        theirs.append("" if paper is None else f"{paper:.2f}")
    rows = [[f"{_PUBLISHED[method]}, published", *theirs, "", "", ""]]
    if any(ours):
        rows.insert(0, [f"{method}, all splits", *ours, "", "", ""])
    return rows


if __name__ == "__main__":
    main()
