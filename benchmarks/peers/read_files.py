"""What other libraries read from text files of tables, found by their own means.

    python read_files.py INPUT.npz OUTPUT.npz

Reads `paths`; writes, by the name of each library, the JSON of the names and columns of
each file, an empty object where it refuses the file.
"""

import json
import math
import sys
import warnings
from importlib import metadata

import clevercsv
import duckdb
import numpy as np
import pandas as pd
import polars as pl


def _read_by_duckdb(path: str) -> dict:
    found = duckdb.read_csv(path)
    columns = zip(*found.fetchall(), strict=True)
    return dict(zip(found.columns, map(list, columns), strict=True))


READERS = {
    "duckdb": _read_by_duckdb,
    "clevercsv": lambda path: clevercsv.read_dataframe(path).to_dict("list"),
    "pandas": lambda path: pd.read_csv(path, sep=None, engine="python").to_dict("list"),
    "polars": lambda path: pl.read_csv(path).to_dict(as_series=False),
}


def _plain(cell: object) -> float | str | None:
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return None if math.isnan(cell) else float(cell)
    return None if cell is None else str(cell)


def main() -> None:
    """Reads all files by each library."""
    warnings.simplefilter("ignore")
    answers = {}
    for library, read in READERS.items():
        texts = []
        for path in np.load(sys.argv[1])["paths"].tolist():
            try:
                columns = read(path)
            except Exception:  # Each library refuses files by errors of its own.
                columns = {}
            cells = {str(k): [_plain(cell) for cell in v] for k, v in columns.items()}
            texts.append(json.dumps(cells))
        answers[f"{library} {metadata.version(library)}"] = np.array(texts)
    np.savez(sys.argv[2], **answers)


if __name__ == "__main__":
    main()
