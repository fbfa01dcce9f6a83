import numpy as np
import pyarrow as pa
import pytest

from service.sandbox.column_statistics import ColumnStatistics
from service.sandbox.inspect import FirstRows
from tfbbb.tables import csv_file
from tfbbb.tables.plain_values import values_reader
from tfbbb.tables.scan import TableScan


def statistics(*batches):
    column = ColumnStatistics("x")
    for batch in batches:
        column.add(batch)
    return column


def histogram(*batches):
    found = statistics(*batches).figures()["histogram"]
    return found["edges"], found["counts"]


@pytest.mark.parametrize("num_batches", [1, 7])
def test_counts_are_those_of_all_values(num_batches):
    generator = np.random.default_rng(0)
    # Later batches are wider, on both sides, so the range doubles many times.
    values = generator.normal(size=20_000) * np.linspace(1e-3, 1e3, 20_000)
    edges, counts = histogram(*map(pa.array, np.array_split(values, num_batches)))
    # Edges lie between the values, so that NumPy counts the same.
    np.testing.assert_array_equal(np.histogram(values, edges)[0], counts)
    assert (edges[0], edges[-1]) == (values.min(), values.max())
    assert 15 <= len(counts) <= 21
    widths = np.diff(edges)
    # The bins at the ends are cut off at the least and the greatest value.
    np.testing.assert_allclose(widths[1:-1], widths[1], rtol=1e-9)


def test_few_whole_numbers_have_a_bin_each():
    values = pa.array([1, 2, 2, 5, None])
    assert histogram(values) == ([0.5, 1.5, 2.5, 3.5, 4.5, 5.5], [1, 2, 0, 0, 1])


def test_infinite_numbers_are_in_no_bin():
    edges, counts = histogram(pa.array([0.5, np.inf, 1.0, np.nan]))
    assert (edges[0], edges[-1], sum(counts)) == (0.5, 1.0, 2)


@pytest.mark.parametrize(
    ("type_", "num_days"), [(pa.date32(), 100), (pa.timestamp("ms", "UTC"), 3000)]
)
def test_edges_of_dates_are_texts(type_, num_days):
    days = pa.array(range(num_days), pa.int32()).cast(pa.date32())
    values = days.cast(pa.timestamp("ms")).cast(type_)
    found = statistics(values, values[::2]).figures()["histogram"]
    assert sum(found["counts"]) == num_days + len(values[::2])
    assert found["edges"][0] == "1970-01-01T00:00:00"
    last = np.datetime64(0, "D") + num_days - 1
    assert found["edges"][-1] == f"{last}T00:00:00"


def test_columns_without_numbers_or_dates_have_no_histogram():
    for values in (pa.array([None], pa.float64()), pa.array([1, 2], pa.time32("s"))):
        assert statistics(values).figures()["histogram"] is None


def test_later_cells_widen_the_type_of_a_column_that_is_read_once(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 64)
    early, late = "1,1,2020-01-01,nan\n" * 100, "2.5,x,2020-01-02T10:00:00,2\n"
    given = tmp_path / "table.csv"
    given.write_text("a,b,c,d\n" + early + late + "1.0,1,,\n")
    scan = TableScan(given)
    read = values_reader(next(scan.batches()).schema)
    columns = [ColumnStatistics(name, read) for name in scan.schema.names]
    for batch in scan.batches():
        for column, cells in zip(columns, batch.columns, strict=True):
            column.add(cells)
    a, b, c, d = (column.figures() for column in columns)
    assert (a["type"], a["distinct"], a["max"]) == ("number", 2, 2.5)
    assert a["mean"] == pytest.approx(103.5 / 102)
    assert b["most_common"] == [["1", 101], ["x", 1]]
    assert (c["type"], c["missing"], c["distinct"]) == ("date", 1, 2)
    assert (c["min"], c["max"]) == ("2020-01-01 00:00:00", "2020-01-02 10:00:00")
    assert (d["type"], d["missing"], d["distinct"]) == ("number", 101, 1)


def test_first_rows_are_bounded_and_tell_kinds():
    rows = FirstRows()
    names = [f"c{number}" for number in range(1000)]
    batch = pa.record_batch([pa.array(np.arange(800.0) % 7) for _ in names], names)
    rows.add(batch)
    rows.add(batch)
    # A million cells.
    assert rows._num_rows == 1000
    kinds = rows.infer_kinds()
    assert kinds["c0"] == {"role": "feature", "kind": "number", "remarks": []}
    assert kinds["c1"]["role"] == "left out"
    assert kinds["c1"]["kind"] is None
    assert "'c0'" in kinds["c1"]["remarks"][0]
