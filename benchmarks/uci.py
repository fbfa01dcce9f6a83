"""Regression tables on standard splits: the defaults beside boosted trees and papers.

    python benchmarks/uci.py --data DIR [--sets yacht] [--methods default] [--splits 5]
        [--processes 2]

DIR holds `uci/SET.npz` or `SET.npz` with `data` [rows, columns], the columns
`index_features` and `index_target`, and the rows `train_idx` and `test_idx` [splits,
rows] of each of the standard splits (Hernandez-Lobato and Adams 2015). A method gets
the training rows of a split and chooses everything within these; its predictions of the
test rows are scored in units of the target.
"""

import argparse
import functools
import time
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from program import (
    add_place_options,
    add_table_options,
    argument_parser,
    failures_skipped,
    run,
)
from records import Measurement, RecordFile, SkippedError
from results import (
    Figure,
    Values,
    losses,
    published,
    published_score,
    splits_line,
    values,
    with_error,
)
from scores import prediction_scores
from standard_splits import Split, Table, find_tables
from table_peers import PEERS, fit_and_score
from timing import markdown_table

PEER_SETTINGS = {
    "ngboost": {"rounds": 500, "patience": 50},
    "catboost": {"rounds": 2000, "patience": 50, "members": 5},
    "sklearn-contrib-bde": {
        "members": 8,
        "epochs": 200,
        "warmup_steps": 5000,
        "samples": 2000,
    },
    "catboost_tuned": {"rounds": 1000, "patience": 50, "folds": 3},
}
EFFORTS = ("default", "quick", "best")
METHODS = (*EFFORTS, *PEER_SETTINGS)
_SMOKE = {
    **{"rounds": 20, "members": 2, "epochs": 2},
    # With 10 of each, version 1.0.2 of sklearn-contrib-bde fails.
    **{"warmup_steps": 100, "samples": 100},
}
FIGURES: Mapping[str, Figure] = {
    "log-likelihood": (["log_likelihood"], True),
    "RMSE": (["rmse"], False),
    "CRPS": (["crps"], False),
    "interval score": (["interval_score_90"], False),
}
# The scores of the table by set, and those whose mean over the sets it has.
_SHOWN = ("log_likelihood", "rmse")
_MEANS = {"coverage_90": 100.0, "seconds": 1.0}


def main(arguments: Sequence[str] | None = None) -> None:
    """Scores each method on each split, prints the tables and writes the records."""
    parser = argument_parser(__doc__)
    add_table_options(parser, METHODS)
    add_place_options(parser)
    run(__file__, parser.parse_args(arguments), measure, report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds one record per set, method and split."""
    tables = find_tables(options.data, options.sets)
    for method in options.methods:
        reason = find_obstacle(method)
        if reason is not None:
            measured.skip({"method": method}, reason)
            continue
        by_table = [measurements(method, table, options) for table in tables]
        if method in PEER_SETTINGS:
            by_table = measured.without_failing(by_table)
        measured.measure_all(list(chain(*by_table)))


def measurements(
    method: str, table: Table, options: argparse.Namespace
) -> list[Measurement]:
    """Returns the measurements of a method on the splits of a table."""
    splits = range(table.num_splits)[: 1 if options.smoke else options.splits]
    return [
        Measurement(
            {"set": table.name, "method": method, "split": split},
            functools.partial(
                score,
                method,
                table.split(split, smoke=options.smoke),
                seed=split,
                smoke=options.smoke,
            ),
            {**PEER_SETTINGS.get(method, {}), "data": table.digest},
            split,
        )
        for split in splits
    ]


def find_obstacle(method: str) -> str | None:
    """Returns why a method cannot run on this machine; None if it can."""
    if method in PEER_SETTINGS:
        try:
            PEERS[method].environment()
        except SkippedError as reason:
            return str(reason)
    return None


def score(method: str, split: Split, *, seed: int, smoke: bool) -> dict[str, Any]:
    """Fits a method to the training rows of a split and scores the test rows."""
    if method in EFFORTS:
        return score_default(split, method, smoke=smoke)
    options: dict[str, Any] = dict(PEER_SETTINGS[method])
    if smoke:
        options |= {name: _SMOKE[name] for name in options.keys() & _SMOKE.keys()}
    return fit_and_score(
        method,
        split.y_test,
        whole_numbers=split.table.whole_numbers,
        task="regression",
        x_train=split.x_train,
        y_train=split.y_train,
        x_test=split.x_test,
        seed=seed,
        **options,
    )


def score_default(split: Split, effort: str, *, smoke: bool) -> dict[str, Any]:
    """Scores `train_table` with the name of the target; `smoke` takes fewer steps."""
    import pyarrow as pa

    from tfbbb.training import train_table

    def table(x: np.ndarray, y: np.ndarray) -> pa.Table:
        return pa.table({**{f"x{i}": x[:, i] for i in range(x.shape[1])}, "target": y})

    spec: dict[str, Any] = {"target": "target", "training": {"effort": effort}}
    if smoke:
        spec["training"]["steps"] = 60
        spec["model"] = {"hidden_units": [8], "members": 2}
    start = time.perf_counter()
    with failures_skipped():
        trained = train_table(table(split.x_train, split.y_train), spec)
    test = table(split.x_test, split.y_test)
    prediction = trained.model.predictive(trained.schema.inputs(test))
    np.asarray(prediction.mean)
    seconds = time.perf_counter() - start
    whole_numbers = split.table.whole_numbers
    return {
        **prediction_scores(prediction, split.y_test, whole_numbers=whole_numbers),
        "seconds": seconds,
    }


def report(measured: RecordFile) -> str:
    """Returns the scores by method and set, and where the defaults are not best."""
    records = measured.records
    sets = sorted({record["set"] for record in records}, key=str.lower)
    found = {score: values(records, [score]) for score in (*_SHOWN, *_MEANS)}
    rows = []
    for method in (m for m in METHODS if measured.select(method=m)):
        cells = [
            " / ".join(
                with_error(found[score][name][method].values())
                for score in _SHOWN
                if method in found[score].get(name, {})
            )
            for name in sets
        ]
        means = [_mean(found[score], method, x) for score, x in _MEANS.items()]
        rows.append([method, *cells, *means])
    for method, figures in published().items():
        cells = []
        for name in sets:
            known = [published_score(method, score, name) for score in _SHOWN]
            cells.append(" / ".join(f"{x:.2f}" for x in known if x is not None))
        rows.append([f"{method} ({figures['source']})", *cells, "", ""])
    columns = ["log-likelihood / RMSE", *sets, "90 % intervals cover, %", "seconds"]
    return "\n\n".join(
        [
            markdown_table(columns, rows),
            "\n".join(losses(records, list(PEER_SETTINGS), FIGURES)),
            f"{splits_line(records)} The published figures are means over 20 splits.",
        ]
    )


def _mean(found: Values, method: str, factor: float) -> str:
    """Returns the mean over the sets of a method's means."""
    of_sets = [np.mean([*by[method].values()]) for by in found.values() if method in by]
    return f"{factor * np.mean(of_sets):.1f}"


if __name__ == "__main__":
    main()
