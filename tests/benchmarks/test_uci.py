import re

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from tests.benchmarks.programs import load, run_smoke

uci = load("uci")
splits = load("standard_splits")
program = load("program")
results = load("results")


def write_set(folder, name, x, y):
    folder.mkdir(exist_ok=True)
    orders = [np.random.default_rng(i).permutation(len(y)) for i in range(2)]
    np.savez(
        folder / f"{name}.npz",
        data=np.column_stack([x, y]),
        index_features=np.arange(x.shape[1]),
        index_target=np.array(x.shape[1]),
        train_idx=[order[len(y) // 10 :] for order in orders],
        test_idx=[order[: len(y) // 10] for order in orders],
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    diabetes = load_diabetes()
    # A table and one in the subdirectory; the targets of the first are whole numbers.
    write_set(folder, "diabetes", diabetes.data, diabetes.target)
    write_set(folder / "uci", "yacht", diabetes.data, diabetes.target + 0.5)
    return folder


def test_the_default_does_better_than_nothing(data, tmp_path):
    options = ("--sets", "diabetes", "--methods", "default")
    smoke = run_smoke("uci", data, tmp_path / "uci.json", *options)
    (record,) = smoke.records
    assert (record["set"], record["method"], record["split"]) == (
        *("diabetes", "default"),
        0,
    )
    assert record["rmse"] < 2.0 * load_diabetes().target.std()
    assert -9.0 < record["log_likelihood"] < -3.0
    assert -9.0 < record["log_probability"] < -3.0
    assert 0.0 < record["crps"] < record["rmse"]
    assert record["coverage_50"] <= record["coverage_90"] <= record["coverage_95"]
    text = uci.report(smoke)
    assert re.search(r"\| default +\| +-\d\.\d\d / \d+\.\d\d \|", text)


def test_a_directory_without_a_set_is_refused_with_the_layout(tmp_path):
    np.savez(tmp_path / "mnist.npz", x_train=np.zeros(3))
    with pytest.raises(program.DataError, match=r"uci/SET\.npz.*train_idx.*Received"):
        splits.find_tables(tmp_path)


def test_a_missing_set_is_refused_with_those_that_exist(data):
    with pytest.raises(program.DataError, match="no set 'energy'; it has diabetes, ya"):
        splits.find_tables(data, ["energy"])


def test_sets_are_found_in_both_places(data):
    tables = splits.find_tables(data)
    assert [table.name for table in tables] == ["diabetes", "yacht"]
    assert [table.whole_numbers for table in tables] == [True, False]
    split = tables[0].split(0)
    assert split.x_train.shape == (398, 10)
    assert not set(split.train) & set(split.test)


def test_an_unknown_method_is_refused(capsys):
    with pytest.raises(SystemExit):
        uci.main(["--methods", "default,xgboost"])
    assert "Received: 'xgboost'" in capsys.readouterr().err


def test_a_peer_without_an_environment_is_skipped_with_the_reason(
    data, tmp_path, monkeypatch, capsys
):
    records = load("records")

    def fail(self):
        raise records.SkippedError("cannot install ngboost: no network")

    monkeypatch.setattr(load("environments").Peer, "environment", fail)
    options = ("--sets", "diabetes", "--methods", "ngboost")
    found = run_smoke("uci", data, tmp_path / "uci.json", *options)
    reason = "cannot install ngboost: no network"
    assert found.skipped == [{"method": "ngboost", "reason": reason}]
    assert f"Skipped: ngboost: {reason}" in capsys.readouterr().out


def test_a_failure_of_ours_is_shown_and_ends_nothing(data, tmp_path, monkeypatch):
    import tfbbb.training

    def fail(table, spec):
        raise tfbbb.training.TrainingDivergedError(0.1)

    monkeypatch.setattr(tfbbb.training, "train_table", fail)
    options = ("--methods", "default")
    found = run_smoke("uci", data, tmp_path / "uci.json", *options)
    assert [entry["set"] for entry in found.skipped] == ["diabetes", "yacht"]
    assert "it failed: " in found.skipped[0]["reason"]


def test_a_set_of_a_longer_name_has_its_published_figures():
    find = results.published_score
    assert find("PBP", "log_likelihood", "naval-propulsion-plant") == 3.73
    assert find("HMC", "rmse", "protein-tertiary-structure") == 3.91
    assert find("HMC", "rmse", "diabetes") is None
