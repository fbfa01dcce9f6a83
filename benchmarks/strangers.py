"""Tables of strangers: what their columns are taken for, and what is learned of them.

    python benchmarks/strangers.py [--sets "co2 (statsmodels)"] [--methods reading]

The tables are those of `strangers.toml`, which registry packages carry with their mess
as it is, beside a key, made by hand, of what a person takes each column for. The method
`reading` reads the file as it is and counts the columns that are taken for what the key
says. Each other method gets a file with the training rows as they are, and the name of
the target. It is scored on five splits: rows at random, or, where there is time, each
sixth part of the rows after those that it learned from. Whole numbers are scored by the
probability of the number.
"""

import argparse
import functools
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from package_tables import (
    FOLDS,
    SourceTable,
    known_tables,
    named,
    names_in,
    read_packages,
    source_table,
)
from program import (
    add_place_options,
    add_table_options,
    argument_parser,
    failures_skipped,
    run,
)
from records import Measurement, RecordFile, SkippedError
from results import Figure, losses, ranks, values, with_error
from scores import class_scores, prediction_scores
from table_peers import fit_and_score
from timing import markdown_table

READING = "reading"
METHODS = (READING, "default", "catboost_tuned", "random_forest", "linear", "constant")
FIGURES: Mapping[str, Figure] = {
    "log-likelihood": (["log_probability", "log_likelihood"], True),
    "RMSE": (["rmse"], False),
    "CRPS": (["crps"], False),
    "interval score": (["interval_score_90"], False),
    "accuracy": (["accuracy"], True),
}
_SMOKE_ROWS = 120
# What a column may be taken for, by what the key says: yes and no are two texts, too.
_ACCEPTED = {
    "number": {"number"},
    "category": {"text", "hashed text"},
    "ordered": {"ordered"},
    "date": {"date"},
    "duration": {"duration"},
    "boolean": {"boolean", "text"},
    "left out": {"left out"},
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads and scores each table, prints the tables and writes the records."""
    parser = argument_parser(__doc__)
    add_table_options(parser, METHODS, sets=list(known_tables()), splits=FOLDS)
    add_place_options(parser)
    run(__file__, parser.parse_args(arguments), measure, report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds one record per table that is read, and one per method and split."""
    entries = known_tables()
    names = options.sets or list(entries)
    found = read_packages(names)
    wanted = []
    for name in names:
        table = source_table(name, entries[name], found[f"cells {name}"].item())
        settings = {"data": table.digest}
        if READING in options.methods:
            content = found[f"file {name}"].tobytes()
            reads = functools.partial(read, entries[name], content)
            key = {"set": name, "method": READING, "split": 0}
            wanted.append(Measurement(key, reads, settings))
        wanted += [
            Measurement(
                {"set": name, "method": method, "split": split},
                functools.partial(score, method, table, split, options.smoke),
                settings,
                split,
            )
            for split in range(1 if options.smoke else options.splits)
            for method in options.methods
            if method != READING
        ]
    measured.measure_all(wanted)


def read(entry: Mapping[str, Any], content: bytes) -> dict[str, Any]:
    """Reads a file as it is; compares what its columns are taken for with the key."""
    from tfbbb.tables import TableError, read_table
    from tfbbb.tables.schema import infer_features

    key = key_of(entry)
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table").with_suffix(_suffix(entry))
        path.write_bytes(content)
        try:
            table = read_table(path, notify=notes.append)
            features, left_out = infer_features(
                table, table.column_names, {}, refuses=False
            )
        except TableError as error:
            refused = str(error).replace(str(path), "the file")
            return {"columns": len(key), "right": 0, "wrong": [], "refused": refused}
    taken = {column.name: column.meaning for column in features}
    taken |= dict.fromkeys(dict(left_out), "left out")
    wrong = []
    for wanted, kinds in key.items():
        name = named(wanted, table.column_names)
        meaning = taken.get(name, "absent")
        if not any(meaning in _ACCEPTED[kind] for kind in kinds):
            wrong.append(f"{name}: {meaning}, not {' or '.join(kinds)}")
    return {
        "rows": table.num_rows,
        "columns": len(key),
        "right": len(key) - len(wrong),
        "wrong": wrong,
        "notes": [note.replace(str(path), "the file") for note in notes],
    }


def key_of(entry: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the kinds that are right for each column of the key."""
    return {
        name: kinds.split("|")
        for kinds, names in entry["kinds"].items()
        for name in names_in(names)
    }


def _suffix(entry: Mapping[str, Any]) -> str:
    path = Path(entry.get("file", "table.csv"))
    packed = path.suffix in (".gz", ".bz2")
    return Path(path.stem).suffix if packed else path.suffix


def score(method: str, table: SourceTable, split: int, smoke: bool) -> dict[str, Any]:
    """Fits a method to the training rows of a split and scores the test rows."""
    train, test = table.split(split)
    targets = table.targets[test]
    with tempfile.TemporaryDirectory() as folder:
        files = {"train": Path(folder, "train.csv"), "test": Path(folder, "test.csv")}
        files["train"].write_text(table.text(train[: _SMOKE_ROWS if smoke else None]))
        files["test"].write_text(table.text(test))
        if method == "default":
            return score_default(table, targets, files, smoke=smoke)
        return fit_and_score(
            method,
            targets,
            whole_numbers=table.whole_numbers,
            **{name: str(path) for name, path in files.items()},
            target=table.target,
            task=table.task,
            seed=split,
        )


def score_default(
    table: SourceTable, targets: np.ndarray, files: Mapping[str, Path], *, smoke: bool
) -> dict[str, Any]:
    """Scores `train_table` with the name of the target; `smoke` takes fewer steps."""
    from tfbbb.tables import TableScan, read_table
    from tfbbb.training import train_table

    spec = {"target": table.target} | ({"training": {"steps": 200}} if smoke else {})
    start = time.perf_counter()
    with failures_skipped():
        trained = train_table(TableScan(files["train"]), spec)
        inputs = trained.schema.inputs(read_table(files["test"]))
        prediction = trained.model.predictive(inputs)
    seconds = time.perf_counter() - start
    if table.task != trained.schema.task:
        raise SkippedError(f"it took the target for a {trained.schema.task}")
    if table.task == "classification":
        classes = np.array(trained.schema.classes)
        probabilities = np.asarray(prediction.probabilities, float)
        scores = class_scores(probabilities, classes, targets)
    else:
        whole = table.whole_numbers
        scores = prediction_scores(prediction, targets, whole_numbers=whole)
    return {**scores, "seconds": seconds}


def report(measured: RecordFile) -> str:
    """Returns what the columns were taken for, and the ranks of the methods."""
    reading = measured.select(method=READING)
    scored = [r for r in measured.records if r["method"] != READING]
    parts = [reading_line(reading)] if reading else []
    if scored:
        parts += [ranks_table(scored), "\n".join(losses(scored, METHODS[2:], FIGURES))]
    return "\n\n".join(parts)


def reading_line(records: Sequence[Mapping[str, Any]]) -> str:
    """Returns how many columns were taken for what the key says."""
    right, columns = (sum(r[name] for r in records) for name in ("right", "columns"))
    refused = sum("refused" in record for record in records)
    return (
        f"Of {len(records)} tables {refused} are refused. Of {columns} columns {right} "
        "are taken for what the key says; the records name the others."
    )


def ranks_table(records: Sequence[Mapping[str, Any]]) -> str:
    """Returns the mean ranks of the methods, their coverage and their seconds."""
    methods = [m for m in METHODS if any(r["method"] == m for r in records)]
    columns = {
        f"{title}, rank": ranks(found, larger_is_better=larger)
        for title, (names, larger) in FIGURES.items()
        if (found := values(records, names))
    }
    covers, seconds = (values(records, [n]) for n in ("coverage_90", "seconds"))
    rows = []
    for method in methods:
        cells = [with_error(of.get(method, ())) for of in columns.values()]
        for found, factor in ((covers, 100.0), (seconds, 1.0)):
            of_tables = [by[method].values() for by in found.values() if method in by]
            means = [float(np.mean([*each])) for each in of_tables]
            cells.append(with_error(means, 1, factor))
        rows.append([method, *cells])
    heads = ["mean over the tables", *columns, "90 % intervals cover, %", "seconds"]
    return markdown_table(heads, rows)


if __name__ == "__main__":
    main()
