import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables import read_table
from tfbbb.tables.column import infer_column
from tfbbb.tables.notations.number import NumberNotation


def inferred(cells, name="a"):
    cells = cells if isinstance(cells, pa.Array) else pa.array(cells)
    return infer_column(pa.table({name: cells}), name)[0]


def numbered(numbers, unit, times=5):
    return [f"{number}{unit}" for number in numbers] * times


@pytest.mark.parametrize(
    ("numbers", "unit"),
    [
        (range(1, 13), "m"),
        (range(1, 13), "M"),
        (range(24), "h"),
        (range(1, 8), "d"),
        # Half-empty runs are no runs, but a few numbers may lack.
        ([1, 2, 3, 5, 6, 7, 8, 9, 11, 12], "m"),
        (range(1, 13), "mo"),
        ([2, 3, 4, 5], "door"),
        ([4, 6, 8], "cyl"),
        (range(24), "Uhr"),
    ],
)
def test_small_numbers_with_letters_are_categories(numbers, unit):
    column = inferred(numbered(numbers, unit))
    assert column.categories == tuple(numbered(numbers, unit, times=1))
    assert column.remarks[0].startswith(f"Its {len(numbers)} whole numbers with ")
    assert "number overrules this" in column.remarks[0]


@pytest.mark.parametrize(
    ("numbers", "unit"),
    [
        (range(1, 13), "kg"),
        (range(1, 13), " m"),
        (range(1, 13), "°C"),
        ([0.5, *range(1, 13)], "m"),
        ([5, 10, 15, 20, 30], "m"),
        ([2, 3, 5], "L"),
        ([5, 12, 24], "V"),
        ([5, 10, 15, 20], "min"),
        (range(1, 53), "w"),
        (range(50, 140, 10), " km/h"),
        (range(18, 30), "yo"),
    ],
)
def test_measurements_with_a_unit_stay_numbers(numbers, unit):
    column = inferred(numbered(numbers, unit))
    assert (column.kind, column.remarks) == ("numeric", ())


def test_numbers_with_letters_in_too_few_rows_stay_numbers():
    assert inferred(numbered(range(1, 13), "m", times=4)).kind == "numeric"


@pytest.mark.parametrize("written", ["{}m", "m{}", "week {}", "{}-b"])
def test_numbered_categories_are_in_the_order_of_bare_ones(written):
    months = [*range(1, 13)] * 5
    bare = pa.array(map(str, months)).dictionary_encode()
    categories = infer_column(pa.table({"a": bare}), "a")[0].categories
    assert [*categories] == [*map(str, range(1, 13))]
    texts = inferred([written.format(month) for month in months]).categories
    assert texts == tuple(map(written.format, range(1, 13)))


def test_other_categories_are_in_the_order_of_their_texts():
    cells = ["b10", "a9", "b9", None] * 5
    assert inferred(cells).categories == ("", "a9", "b10", "b9")


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("month", range(1, 13)),
        ("a", range(1, 13)),
        ("a", range(24)),
        ("a", range(1, 32)),
        ("a", range(60)),
        ("startMinute", range(0, 60, 5)),
        ("week of the year", range(1, 54)),
        ("hora", [0, 6, 12]),
    ],
)
def test_two_digits_of_a_calendar_or_a_clock_are_numbers(name, numbers):
    cells = [f"{number:02d}" for number in numbers] * 2
    column = inferred([*cells, "unknown", None], name)
    assert column.notation == NumberNotation(missing_marks=("unknown",))
    assert "not as codes; text overrules this" in column.remarks[0]
    values = column.values(pa.table({name: cells}))
    np.testing.assert_array_equal(values, [*numbers] * 2)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("fips", [f"{number:02d}" for number in range(1, 57)]),
        ("region_code", ["01", "02", "16"]),
        ("state", ["01", "02", "16"]),
        ("a", [f"{number:02d}" for number in range(1, 57)]),
        ("month", ["01", "12", "60"]),
        ("a", ["001", "002", "012"]),
        ("a", ["1", "02", "03"]),
    ],
)
def test_codes_with_leading_zeros_are_categories(name, cells):
    column = inferred(cells * 2, name)
    assert column.categories == tuple(cells)
    assert "are codes and read as categories" in column.remarks[0]


def test_categories_of_a_frame_stay_categories():
    cells = [f"{month:02d}" for month in range(1, 13)]
    assert inferred(pa.array(cells * 2).dictionary_encode()).categories == tuple(cells)


def test_months_of_two_digits_are_read_from_files(tmp_path):
    path = tmp_path / "months.csv"
    path.write_text("month,zip\n" + "".join(f"{m:02d},0156{m}\n" for m in range(1, 10)))
    table = read_table(path)
    month = infer_column(table, "month")[0]
    assert (month.kind, month.low, month.high) == ("numeric", 1.0, 9.0)
    assert infer_column(table, "zip", required=True)[0].kind == "categorical"
    # Rows without a leading zero are whole numbers where a file is read.
    path.write_text("month,zip\n11,94110\n12,10001\n")
    assert month.values(read_table(path)).tolist() == [11.0, 12.0]
