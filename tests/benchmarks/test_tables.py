import csv
import io
import re

import numpy as np
import pytest

from tests.benchmarks.programs import load, run_smoke

tables = load("tables")
generated = load("generated_tables")


def of_generator(tmp_path):
    """The tables that need neither data nor another environment."""
    found = []
    for table in load("table_sources").find_sources(tmp_path):
        found.append(table)
        if table.name == "generated: outliers":
            return found
    raise AssertionError("The generated tables end with outliers.")


def test_each_table_is_a_file_of_its_rows(tmp_path):
    found = of_generator(tmp_path)
    assert len(found) == 4 + len(generated.GENERATED)
    for table in found:
        head, *rows = csv.reader(
            io.StringIO(table.text(range(table.num_rows))), delimiter=table.separator
        )
        assert table.target in head
        assert len(rows) == table.num_rows == len(table.targets)
        assert {len(row) for row in rows} == {len(head)}
        train, test = table.split(3)
        assert sorted([*train, *test]) == list(range(table.num_rows))
        assert abs(len(test) - table.num_rows / 5) < 1


def test_tables_are_the_same_each_time(tmp_path):
    pairs = zip(of_generator(tmp_path), of_generator(tmp_path), strict=True)
    assert all(one.digest == other.digest for one, other in pairs)


@pytest.mark.slow
def test_the_defaults_read_and_learn_a_generated_table(tmp_path):
    found = run_smoke(
        "tables",
        tmp_path,
        tmp_path / "tables.json",
        *("--sets", "generated: counts", "--methods", "default"),
    )
    (record,) = found.records
    # The standard deviation of the counts is 3.
    assert record["rmse"] < 3.0
    assert record["log_probability"] < 0.0
    assert record["beside"].keys() == {"mean", "linear model"}
    assert "generated: counts" in tables.report(found)


def test_ranks_share_equal_places_and_count_complete_tables():
    found = {
        "a": {"x": {0: 1.0}, "y": {0: 2.0}, "z": {0: 2.0}},
        "b": {"x": {0: 3.0, 1: 9.0}, "y": {0: 2.0}, "z": {0: 1.0, 1: 9.0}},
    }
    assert tables.ranks(found, 1) == {"x": [3.0, 1.0], "y": [1.5, 2.0], "z": [1.5, 3.0]}
    assert tables.ranks(found, -1) == {
        "x": [1.0, 3.0],
        "y": [2.5, 2.0],
        "z": [2.5, 1.0],
    }


def test_a_method_with_few_tables_is_not_ranked():
    found = {str(i): {"x": {0: 1.0}, "y": {0: 2.0}} for i in range(3)}
    found["3"] = {"x": {0: 1.0}, "y": {0: 2.0}, "z": {0: 0.0}}
    assert tables.ranks(found, -1) == {"x": [1.0] * 4, "y": [2.0] * 4}


def test_ranks_are_reported_with_paired_errors():
    records = [
        {"set": table, "method": method, "split": 0, "crps": crps}
        for table, figures in {"a": (1, 2), "b": (1, 2), "c": (2, 1)}.items()
        for method, crps in zip(("default", "crepes"), figures, strict=True)
    ]
    text = "\n".join(tables.scores_report(records, tables.METHODS))
    assert re.search(r"mean rank +\| +1\.33 ± 0\.33 \| +1\.67 ± 0\.33 ", text)
    assert re.search(r"rank less ours \| +\| +0\.33 ± 0\.67 ", text)


def test_a_label_that_training_lacked_has_no_probability():
    probabilities = np.array([[0.9, 0.1], [0.5, 0.5]])
    found = tables.scores_of_classes(
        probabilities, np.array(["a", "b"]), np.array(["a", "new"])
    )
    assert found["accuracy"] == 0.5
    assert found["log_likelihood"] == pytest.approx((np.log(0.9) + np.log(1e-12)) / 2)
