"""Which library reads which text files of tables: the table of `docs/tables.md`.

    python benchmarks/readers.py [FOLDER]

The files are those of FOLDER (default: ../shared/cases/tables/files), made from the
same 60 rows as people write them, and files that `tests/tables/strange_files.py`
generates. A file counts as read if all rows are, with the names of their columns, their
numbers, and in the files of `LETTERS` and those generated their texts. Each library
finds encoding, delimiter and header by its own means. Files that are not read are
listed.
"""

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from environments import Peer
from hypothesis import HealthCheck, Phase, given, settings
from program import FOLDER
from timing import markdown_table

sys.path.insert(0, str(FOLDER.parent))

from tests.tables.strange_files import StrangeFile, strange_files
from tfbbb.tables import TableError, read_table

LIBRARIES = Peer(
    "read_files",
    (
        *("clevercsv==0.8.5", "duckdb==2.0.1", "pandas==3.1.1", "polars==2.1.0"),
        *("chardet==7.7.0", "numpy==2.3.5"),
    ),
)
NUM_GENERATED = 300
# What is beside the sizes and prices in files of other encodings.
LETTERS = {
    "big5.csv": ("城市", "台北", "高雄"),
    "cp1250.csv": ("město", "Plzeň", "Žďár"),
    "cp1251.csv": ("город", "Москва", "Казань"),
    "macroman.csv": ("ville", "Orléans", "Nîmes"),
    "sjis.csv": ("都市", "東京", "大阪"),
}
# Rows without a size, for a word that stands for a missing value.
_MISSING = {
    "one_word.csv": {40},
    "stars.csv": {59},
    "Unknown_many.csv": {*range(0, 60, 6)},
}
# Columns that some files have in another form, or not at all.
_LACKED = {
    **dict.fromkeys(("sentinel.csv", "minus999.csv", "percent_target.csv"), "price"),
    **{"target_words.csv": "price", "dup.csv": "size"},
}


class Input(NamedTuple):
    """A file, and what a reader must find in it.

    Attributes:
        path: The file.
        columns: The cells of columns by name.
        has_names: Whether the file names its columns; otherwise the last ones count.
    """

    path: Path
    columns: dict[str, list[Any]]
    has_names: bool = True


def list_inputs(folder: Path) -> list[Input]:
    """Returns the text files of a folder, made from rows with a size and a price."""
    generator = random.Random(0)
    rows = [
        (
            generator.choice(["north", "south", "east"]),
            round(generator.uniform(1, 9), 2),
            round(generator.uniform(10, 99), 1),
        )
        for _ in range(60)
    ]
    inputs = []
    for path in sorted(path for path in folder.iterdir() if path.suffix != ".xlsx"):
        missing = _MISSING.get(path.name, set())
        sizes = [None if i in missing else row[1] for i, row in enumerate(rows)]
        columns: dict[str, list[Any]] = {"size": sizes, "price": [r[2] for r in rows]}
        if path.name == "mixed_enc.csv":
            columns = {"size": [*sizes, 1.5, 1.5], "price": [*columns["price"], 20, 20]}
        columns.pop(_LACKED.get(path.name, ""), None)
        if path.name in LETTERS:
            name, odd, even = LETTERS[path.name]
            columns[name] = [odd if row % 2 else even for row in range(60)]
        inputs.append(Input(path, columns, path.name != "noheader.csv"))
    return inputs


def generate_inputs(folder: Path) -> list[Input]:
    """Writes generated files into a folder, and returns them."""
    files: list[StrangeFile] = []

    @settings(
        max_examples=NUM_GENERATED,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(file=strange_files())
    def collect(file: StrangeFile) -> None:
        files.append(file)

    collect()
    inputs = []
    for number, file in enumerate(one for one in files if not one.is_refused):
        path = folder / f"{number}.csv"
        path.write_bytes(file.text.encode(file.encoding))
        names, cells = file.names[-3:], zip(*file.rows, strict=True)
        columns = dict(zip(names, [*map(list, cells)][-3:], strict=True))
        inputs.append(Input(path, columns, "place" in names))
    return inputs


def read_ours(path: Path) -> dict[str, list[Any]]:
    """Returns the columns of a file as this package reads them."""
    try:
        return read_table(path).to_pydict()
    except TableError:
        return {}


def is_read(found: dict[str, list[Any]], wanted: Input) -> bool:
    """Whether a reader has found the columns of a file."""
    if not wanted.has_names:
        last = [*found.values()][-len(wanted.columns) :]
        return last == [*wanted.columns.values()]
    plain = {name.strip().lower(): cells for name, cells in found.items()}
    return all(plain.get(name) == cells for name, cells in wanted.columns.items())


def report(folder: Path) -> str:
    """Returns the table of libraries, and the files that each does not read."""
    with tempfile.TemporaryDirectory() as generated:
        groups = [list_inputs(folder), generate_inputs(Path(generated))]
        inputs = [each for group in groups for each in group]
        paths = [str(each.path) for each in inputs]
        answers = {"tfbbb": [read_ours(each.path) for each in inputs]}
        for library, texts in LIBRARIES.run(paths=np.array(paths)).items():
            answers[library] = [json.loads(text) for text in texts.tolist()]
    lines, failed = [], []
    for library, found in answers.items():
        passed = [is_read(*pair) for pair in zip(found, inputs, strict=True)]
        parts = passed[: len(groups[0])], passed[len(groups[0]) :]
        lines.append([library, *(f"{sum(p)} of {len(p)}" for p in parts)])
        names = [
            x.path.stem for x, ok in zip(groups[0], parts[0], strict=True) if not ok
        ]
        failed.append(f"{library} does not read: {', '.join(names) or 'none'}.")
    table = markdown_table(["library", "files of people", "generated files"], lines)
    return "\n".join([table, "", *failed])


def main() -> None:
    """Prints the report."""
    default = FOLDER.parents[1] / "shared" / "cases" / "tables" / "files"
    print(report(Path(sys.argv[1]) if sys.argv[1:] else default))


if __name__ == "__main__":
    main()
