import pyarrow as pa
import pytest

from tfbbb.tables.column import infer_column


def inferred(cells, name="a"):
    return infer_column(pa.table({name: pa.array(cells)}), name)[0]


@pytest.mark.parametrize("written", ["m{}", "week {}", "{}-b"])
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


@pytest.mark.parametrize("cells", [["01", "02", "16"], ["001", "002"], ["1", "02"]])
def test_codes_with_leading_zeros_are_categories(cells):
    column = inferred(cells * 2)
    assert column.categories == tuple(cells)
    assert "are codes and read as categories" in column.remarks[0]
