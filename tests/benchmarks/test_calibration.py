import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

from tests.benchmarks.programs import load, run_smoke
from tests.benchmarks.test_uci import write_set

calibration = load("calibration")
program = load("program")
METHOD = "auto by groups"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    diabetes, cancer = load_diabetes(), load_breast_cancer()
    write_set(folder, "diabetes", diabetes.data, diabetes.target)
    np.savez(folder / "cancer.npz", x=cancer.data, y=cancer.target)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diabetes", "cancer"])
def test_new_rows_are_covered(data, tmp_path, name):
    options = ("--sets", name, "--methods", METHOD)
    measured = run_smoke("calibration", data, tmp_path / "c.json", *options)
    (record,) = measured.records
    assert (record["set"], record["method"]) == (name, METHOD)
    assert record["coverage_50"] <= record["coverage_90"] <= record["coverage_95"]
    assert record["size_50"] <= record["size_90"] <= record["size_95"]
    # Some 50 test rows, and as many held-out ones for a recalibration.
    assert record["coverage_90"] > 0.9 - 4 * np.sqrt(2 * 0.09 / 40)
    text = calibration.report(measured)
    assert text.count(f"\n| {name}") == 1
    assert "worst third" in text


def test_the_worst_group_is_that_of_all_splits():
    counts = {"low": (90, 100), "middle": (40, 50), "high": (10, 40)}
    records = [
        {f"covered_{name}": covered for name, (covered, _) in counts.items()}
        | {f"rows_{name}": rows for name, (_, rows) in counts.items()}
    ] * 2
    # The last third has 80 rows, too few.
    assert calibration.worst_group(records) == 0.8


def test_a_directory_without_tables_is_refused(tmp_path):
    with pytest.raises(program.DataError, match="it has neither"):
        calibration.find_cases(tmp_path, None)
