"""Several targets by one model: boxes that hold all of them, beside separate models.

    python benchmarks/several_targets.py [--sets diabetes] [--splits 3]

Separate models have intervals that hold all targets by Bonferroni's inequality. Volumes
are compared at equal coverage: each method's boxes are scaled about their centres until
they hold all targets in 90 % of the test rows.
"""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from program import add_table_options, argument_parser, run
from records import RecordFile
from results import with_error
from timing import markdown_table

_LEVEL, _TEST, _DRAWS = 0.9, 0.25, 200
ONE, SEPARATE = "one model", "separate models"
# Features by name, and the targets by name.
Columns = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]


def _simulated() -> Columns:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(600, 3))
    covariance = [[1.0, 0.9], [0.9, 1.0]]
    noise = generator.multivariate_normal([0.0, 0.0], covariance, 600)
    spread = np.exp(0.4 * x[:, 2])
    targets = {
        "a": np.sin(2.0 * x[:, 0]) + 0.5 * spread * noise[:, 0],
        "b": x[:, 0] + x[:, 1] + spread * noise[:, 1],
    }
    return dict(zip("uvw", x.T, strict=True)), targets


def _of_sklearn(loader: str, targets: Sequence[str], others: Sequence[str]) -> Columns:
    import sklearn.datasets

    frame = getattr(sklearn.datasets, loader)(as_frame=True).data
    columns = {name: frame[name].to_numpy() for name in frame.columns}
    features = [x for x in columns if x not in (*targets, *others)]
    return {x: columns[x] for x in features}, {x: columns[x] for x in targets}


SETS: Mapping[str, Callable[[], Columns]] = {
    "simulated": _simulated,
    # Cholesterol in all and LDL; other lipids would give them away.
    "diabetes": functools.partial(
        _of_sklearn, "load_diabetes", ["s1", "s2"], ["s3", "s4", "s5"]
    ),
    "wine": functools.partial(
        _of_sklearn, "load_wine", ["total_phenols", "flavanoids"], []
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures the sets, and prints the table of figures."""
    parser = argument_parser(__doc__)
    add_table_options(parser, [ONE, SEPARATE], sets=list(SETS), splits=3)
    run(__file__, parser.parse_args(arguments), measure, report)


def measure(measured: RecordFile, options: Any) -> None:
    """Adds the records that the file lacks, the first split of each set first."""
    training: dict[str, Any] = {"effort": "quick"}
    if options.smoke:
        training = {"epochs": 5}
    splits = range(1 if options.smoke else options.splits)
    chosen = options.sets or list(SETS)
    for split, name, method in itertools.product(splits, chosen, options.methods):
        measured.measure(
            {"set": name, "split": split, "method": method},
            functools.partial(figures, name, split, method, training),
            settings={"training": training},
            seed=split,
        )


def figures(
    name: str, split: int, method: str, training: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the coverage and volume of boxes, and the energy score of test rows."""
    import pyarrow as pa

    from tfbbb.training import train_table

    features, targets = SETS[name]()
    table, y = pa.table({**features, **targets}), np.stack([*targets.values()], axis=1)
    order = np.random.default_rng(split).permutation(len(y))
    test, train = np.split(order, [int(_TEST * len(y))])
    groups = [list(targets)] if method == ONE else [[target] for target in targets]
    ends, draws = [], []
    for group in groups:
        spec = {"target": group, "features": list(features), "training": training}
        trained = train_table(table.take(train), spec)
        prediction = trained.model.predictive(trained.schema.inputs(table.take(test)))
        # Each of the intervals misses by its share of the level.
        level = 1.0 - (1.0 - _LEVEL) / len(groups)
        ends.append(np.stack(prediction.interval(level, joint=True)))
        draws.append(prediction.sample(_DRAWS))
    (lower, upper), drawn = np.concatenate(ends, axis=2), np.concatenate(draws, axis=2)
    scale, truth = y[train].std(axis=0), y[test]
    half, centre = 0.5 * (upper - lower), 0.5 * (upper + lower)
    beyond = np.max(np.abs(truth - centre) / half, axis=1)
    volume = np.mean(np.prod(2.0 * half / scale, axis=1))
    needed = np.quantile(beyond, _LEVEL, method="inverted_cdf")
    return {
        "coverage": float(np.mean(beyond <= 1.0)),
        "volume": float(volume),
        "volume_at_equal_coverage": float(volume * needed ** y.shape[1]),
        "energy_score": energy_score(drawn / scale, truth / scale),
    }


def energy_score(drawn: np.ndarray, truth: np.ndarray) -> float:
    """Returns the mean energy score (Gneiting and Raftery 2007) of draws [n, rows, k].

    E|Y - y| - E|Y - Y'| / 2,

    with the distances of draws in the first half from those in the second one.
    """
    near = np.linalg.norm(drawn - truth, axis=-1).mean()
    first, second = np.split(drawn, 2)
    apart = np.linalg.norm(first[:, np.newaxis] - second, axis=-1).mean()
    return float(near - 0.5 * apart)


def report(measured: RecordFile) -> str:
    """Returns the figures of both methods by set."""
    names = dict.fromkeys(record["set"] for record in measured.records)
    rows = []
    for name, method in itertools.product(names, (ONE, SEPARATE)):
        found = measured.select(set=name, method=method)
        if found:
            rows.append(
                [
                    f"{name}, {method}",
                    with_error([x["coverage"] for x in found], 1, 100.0),
                    *(
                        with_error([x[figure] for x in found], 3)
                        for figure in (
                            "volume",
                            "volume_at_equal_coverage",
                            "energy_score",
                        )
                    ),
                ]
            )
    columns = [
        "set",
        "boxes of 90 % hold all, %",
        "volume",
        "volume at equal coverage",
        "energy score",
    ]
    return markdown_table(columns, rows)


if __name__ == "__main__":
    main()
