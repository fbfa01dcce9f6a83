import pytest

from tests.benchmarks.programs import load

readers = load("readers")


def test_each_text_file_has_the_columns_that_a_reader_must_find(tmp_path):
    for name in ("plain.csv", "big5.csv", "noheader.csv", "stars.csv", "book.xlsx"):
        (tmp_path / name).touch()
    inputs = {each.path.name: each for each in readers.list_inputs(tmp_path)}
    assert [*inputs] == ["big5.csv", "noheader.csv", "plain.csv", "stars.csv"]
    plain = inputs["plain.csv"].columns
    assert plain["size"][0] == 7.06
    assert plain["price"][:2] == [47.4, 53.2]
    assert [len(cells) for cells in plain.values()] == [60, 60]
    assert inputs["big5.csv"].columns["城市"][:2] == ["高雄", "台北"]
    assert inputs["stars.csv"].columns["size"][58:] == [plain["size"][58], None]
    assert [name for name, each in inputs.items() if not each.has_names] == [
        "noheader.csv"
    ]


@pytest.mark.parametrize(
    ("found", "has_names", "read"),
    [
        ({"x": ["a"], " Size": [1.0], "price": [None]}, True, True),
        ({"x": ["a"], "size": [1.0], "price": [2.0]}, True, False),
        ({"x": ["a"], "1": [1.0], "2": [None]}, True, False),
        ({"x": ["a"], "1": [1.0], "2": [None]}, False, True),
        ({}, True, False),
        ({}, False, False),
    ],
)
def test_a_file_is_read_if_all_its_columns_are_found(found, has_names, read):
    wanted = readers.Input(None, {"size": [1.0], "price": [None]}, has_names)
    assert readers.is_read(found, wanted) == read
