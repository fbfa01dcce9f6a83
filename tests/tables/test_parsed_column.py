"""A column is parsed once, into values that all its readers share."""

import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables import Schema
from tfbbb.tables.cells import Cells
from tfbbb.tables.notations.notation import Texts
from tfbbb.tables.notations.number import NumberNotation
from tfbbb.tables.notations.words import TextNotation
from tfbbb.tables.parsed_column import ParsedColumn, ParsedTable
from tfbbb.tables.values import MISSING_DATE

ROWS = 40
TABLE = pa.table(
    {
        "number": np.sqrt(np.arange(ROWS)),
        "price": [f"${1 + row**2:,}" for row in range(ROWS)],
        "color": ["red", "blue", "NA", "green"] * (ROWS // 4),
        "day": [f"2024-02-{1 + row % 29:02d}" for row in range(ROWS)],
        "sold": ["yes", "no"] * (ROWS // 2),
    }
)


@pytest.mark.parametrize(
    ("cells", "kind", "notation", "values", "texts"),
    [
        ([1.5, None], "numeric", None, [1.5, np.nan], []),
        (["$2", "?"], "numeric", NumberNotation(currency=True), [2, np.nan], []),
        (pa.array([1, None], pa.date32()), "date", None, [86400, MISSING_DATE], []),
        (["b", None, "a", ""], "categorical", None, [0, 1, 2, 1], ["b", "", "a"]),
        (["b", " NA"], "categorical", TextNotation(marks=True), [0, 1], ["b", ""]),
        ([7.0, None], "categorical", TextNotation(numbers=True), [0, 1], ["7", ""]),
    ],
)  # fmt: skip
def test_values_and_missing_cells_of_every_kind(cells, kind, notation, values, texts):
    read = Cells.read(pa.table({"a": cells}), "a")
    column = ParsedColumn.parse(read, kind, notation)
    np.testing.assert_array_equal(column.values, values)
    assert column.texts.to_pylist() == texts
    assert column.missing.tolist() == [
        value in (None, "", "?", " NA") for value in pa.array(cells).to_pylist()
    ]


@pytest.mark.parametrize("target", ["number", "sold"])
def test_a_remembering_table_reads_each_text_column_once(monkeypatch, target):
    plain = Schema.infer(TABLE, target)
    rows = np.array([30, 3, 4, 17])
    expected = plain.refitted(TABLE, np.arange(0, ROWS, 3))
    inputs, targets = expected.inputs(TABLE.take(rows)), expected.targets(TABLE)
    read = []
    of = Texts.of

    def counted(column):
        read.append(len(column))
        return of(column)

    monkeypatch.setattr(Texts, "of", counted)
    table = ParsedTable(TABLE)
    schema = Schema.infer(table, target)
    assert schema == plain
    assert schema.refitted(table, np.arange(0, ROWS, 3)) == expected
    found = schema.inputs(ParsedTable(table, rows))
    for name, values in inputs.items():
        np.testing.assert_array_equal(found[name], values)
    np.testing.assert_array_equal(schema.targets(table), targets)
    assert read == [ROWS] * 4
