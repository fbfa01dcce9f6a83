"""Gaps in tables, and the detectors and jobs that meet their rows."""

import numpy as np
import pytest

from tests.benchmarks.programs import load, run_smoke


def write_table(directory):
    """Writes a table whose target is the sine of its first feature."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-3.0, 3.0, size=(300, 2))
    y = np.sin(x[:, :1]) + 0.1 * generator.normal(size=(300, 1))
    (directory / "uci").mkdir()
    np.savez(
        directory / "uci" / "sine.npz",
        data=np.hstack([x, y]),
        index_features=np.arange(2),
        index_target=2,
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    write_table(directory)
    return directory


def test_familiarity_tells_a_gap_that_other_detectors_do_not(data, tmp_path):
    methods = ("--methods", "familiarity,lof,isolation_forest,one_class_svm")
    measured = run_smoke("shift", data, tmp_path / "shift.json", *methods)
    auroc = {x["method"]: x["auroc"] for x in measured.select(place="middle")}
    assert auroc["familiarity"] > 0.95
    assert auroc["familiarity"] > max(v for k, v in auroc.items() if k != "familiarity")
    for ours in measured.select(method="familiarity"):
        assert ours["false_alarms"] < 0.2 < ours["alarms"]
    assert "| a gap, sine" in load("shift").report(measured)


@pytest.mark.slow
def test_a_job_has_a_record_with_both_parts(data, tmp_path):
    methods = ("--methods", "familiarity,job")
    measured = run_smoke("shift", data, tmp_path / "shift.json", *methods)
    middle, end = measured.select(method="job")
    assert [middle["place"], end["place"]] == ["middle", "end"]
    for record in (middle, end):
        assert record["set"] == "sine"
        assert record["outside"]["rows"] == 20
        assert record["gap"]["rows"] == 100
        assert record["gap"]["width_90"] > record["gap"]["width_90_without"]
        assert 0.0 <= record["auroc"] <= 1.0


def test_a_gap_is_the_middle_third_of_a_feature(data):
    (splits,) = load("gap_splits").gap_splits(data, "middle").values()
    for feature, split in enumerate(splits):
        values = split.data[:, feature]
        parts = np.concatenate([split.train, split.outside, split.gap])
        np.testing.assert_array_equal(np.sort(parts), np.arange(300))
        beside = np.concatenate([split.train, split.outside])
        low, high = values[split.gap].min(), values[split.gap].max()
        assert not np.any((low <= values[beside]) & (values[beside] <= high))
        assert len(split.gap) == 100
        assert np.sum(values[beside] < low) == 100


def test_an_end_is_the_upper_or_the_lower_third_of_a_feature(data):
    (splits,) = load("gap_splits").gap_splits(data, "end").values()
    for feature, split in enumerate(splits):
        values = (1.0, -1.0)[feature] * split.data[:, feature]
        beside = np.concatenate([split.train, split.outside])
        assert values[split.gap].min() > values[beside].max()
        assert len(split.gap) == 100


def test_a_directory_without_tables_is_an_error(tmp_path):
    with pytest.raises(SystemExit, match=r"must have tables `uci/SET\.npz`"):
        run_smoke("shift", tmp_path, tmp_path / "shift.json")
