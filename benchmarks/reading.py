"""Reading a CSV file: `read_table`, `TableScan` and pyarrow's own CSV reader.

    python benchmarks/reading.py

pyarrow reads a file whose delimiter, encoding and decimal mark are known, and allows no
line breaks in cells. `read_table` finds them out and checks them against all rows.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from timing import interleaved, machine, print_table, ratio, spread, write_json

from tfbbb.tables import TableScan, read_table

ARROW = "pyarrow.csv.read_csv"
WORDS = ("mill lane", "park road", "high street", "church close", "station square")


def main() -> None:
    """Measures, prints the tables and writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": machine(), "rows": options.rows, "files": {}}
    columns = table(options.rows)
    with tempfile.TemporaryDirectory() as directory:
        for name, write_options in files().items():
            path = Path(directory) / "table.csv"
            pa.csv.write_csv(columns, path, write_options)
            parse = pa.csv.ParseOptions(delimiter=write_options.delimiter)
            assert read_table(path).equals(pa.csv.read_csv(path, parse_options=parse))
            measured = interleaved(contenders(path, parse), options.rounds, name)
            results["files"][name] = {
                "megabytes": path.stat().st_size / 1e6,
                **{
                    contender: {
                        **spread(values),
                        "times": ratio(measured, contender, ARROW),
                    }
                    for contender, values in measured.items()
                },
            }
            show(name, results["files"][name], list(measured))
    write_json(__file__, results)


def table(rows: int) -> pa.Table:
    """Returns 20 columns: ten of decimals, five of integers, four of words, a date."""
    generator = np.random.default_rng(0)
    columns: dict[str, Any] = {}
    for i in range(10):
        columns[f"decimal_{i}"] = generator.normal(size=rows).round(4)
    for i in range(5):
        columns[f"integer_{i}"] = generator.integers(0, 1000, rows)
    for i in range(4):
        columns[f"word_{i}"] = pa.array(WORDS).take(generator.integers(0, 5, rows))
    columns["day"] = pa.array(generator.integers(0, 20_000, rows), pa.int32()).cast(
        pa.date32()
    )
    return pa.table(columns)


def files() -> dict[str, pa.csv.WriteOptions]:
    """Returns how each file is written."""
    return {
        "commas": pa.csv.WriteOptions(quoting_style="none", quoting_header="none"),
        "commas, cells in quotes": pa.csv.WriteOptions(quoting_style="all_valid"),
        "semicolons": pa.csv.WriteOptions(
            delimiter=";", quoting_style="none", quoting_header="none"
        ),
    }


def contenders(
    path: Path, parse: pa.csv.ParseOptions
) -> dict[str, Callable[[], float]]:
    """Returns functions that read a file and return milliseconds."""

    def timed(read: Callable[[], object]) -> Callable[[], float]:
        def measure() -> float:
            begin = time.perf_counter()
            read()
            return 1000 * (time.perf_counter() - begin)

        return measure

    return {
        ARROW: timed(lambda: pa.csv.read_csv(path, parse_options=parse)),
        "the same, line breaks in cells": timed(
            lambda: pa.csv.read_csv(
                path,
                parse_options=pa.csv.ParseOptions(
                    delimiter=parse.delimiter, newlines_in_values=True
                ),
            )
        ),
        "pyarrow.csv.open_csv": timed(
            lambda: pa.csv.open_csv(path, parse_options=parse).read_all()
        ),
        "read_table": timed(lambda: read_table(path)),
        "TableScan.collect": timed(lambda: TableScan(path).num_rows),
    }


def show(name: str, figures: dict[str, Any], measured: list[str]) -> None:
    """Prints the figures of a file."""
    rows = [
        [
            contender,
            f"{figures[contender]['median']:.0f}",
            f"{figures[contender]['times']:.2f}",
        ]
        for contender in measured
    ]
    title = f"{name}, {figures['megabytes']:.0f} MB"
    print_table(title, ["", "ms", "× pyarrow"], rows)


if __name__ == "__main__":
    main()
