import re

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from tests.benchmarks.programs import load, run_smoke

uci = load("uci")
splits = load("standard_splits")
program = load("program")
NETWORKS = ("dropout", "mean_field", "deep_ensemble")


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


@pytest.fixture(scope="module")
def smoke(data, tmp_path_factory):
    output = tmp_path_factory.mktemp("output") / "uci.json"
    options = ("--sets", "diabetes", "--methods", "default")
    return run_smoke("uci", data, output, *options)


def test_the_default_does_better_than_nothing(smoke):
    check_methods(smoke.records, ["default"])


@pytest.mark.slow
def test_every_network_does_better_than_nothing(data, tmp_path):
    options = ("--sets", "diabetes", "--methods", ",".join(NETWORKS))
    records = run_smoke("uci", data, tmp_path / "u.json", *options).records
    check_methods(records, NETWORKS)


def check_methods(records, methods):
    spread = load_diabetes().target.std()
    assert [r["method"] for r in records] == list(methods)
    for record in records:
        assert record["set"] == "diabetes"
        assert record["split"] == 0
        assert record["rmse"] < 2.0 * spread
        assert -9.0 < record["log_likelihood"] < -3.0
        assert -9.0 < record["log_probability"] < -3.0
        assert 0.0 < record["crps"] < record["rmse"]
        assert record["coverage_50"] <= record["coverage_90"] <= record["coverage_95"]
        assert record["seconds"] > 0.0


def test_the_report_comes_from_the_records(smoke):
    text = uci.report(smoke)
    assert re.search(r"\| default +\| +\d+\.\d\d \|", text)


def test_a_second_run_measures_what_is_missing(smoke, data, monkeypatch):
    asked = []

    def score(method, *arguments, **options):
        asked.append(method)
        return {"rmse": 1.0}

    monkeypatch.setattr(uci, "score", score)
    monkeypatch.setattr(uci, "report", lambda measured: "")
    output = smoke.path.with_name("copy.json")
    output.write_bytes(smoke.path.read_bytes())
    options = ("--sets", "diabetes", "--methods", "default,map")
    again = run_smoke("uci", data, output, *options)
    assert asked == ["map"]
    assert len(again.records) == len(smoke.records) + 1


@pytest.mark.slow
def test_processes_add_the_records_of_this_process(smoke, data):
    """Apart from order, times and last bits: each process has one thread."""
    names = ("set", "method", "split", "seed", "settings")
    options = ("--sets", "diabetes,yacht", "--methods", "map", "--processes", "2")
    output = smoke.path.with_name("processes.json")
    records = run_smoke("uci", data, output, *options).records
    found = sorted(records, key=lambda record: record["set"])
    assert [record["set"] for record in found] == ["diabetes", "yacht"]
    options = ("--sets", "diabetes", "--methods", "map")
    (alone,) = run_smoke("uci", data, output.with_name("alone.json"), *options).records
    assert {name: found[0][name] for name in names} == {
        name: alone[name] for name in names
    }
    for name in ("rmse", "log_likelihood", "crps", "coverage_90"):
        assert found[0][name] == pytest.approx(alone[name], rel=1e-2)
    assert found[0].keys() == alone.keys()


@pytest.fixture
def empty(tmp_path):
    np.savez(tmp_path / "mnist.npz", x_train=np.zeros(3))
    return tmp_path


def test_a_directory_without_a_set_is_refused_with_the_layout(empty):
    with pytest.raises(program.DataError, match=r"uci/SET\.npz.*train_idx.*Received"):
        splits.find_tables(empty)


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
    assert f"Skipped: ngboost: {reason}" in uci.report(found)


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
    find = program.published_score
    assert find("PBP", "log_likelihood", "naval-propulsion-plant") == 3.73
    assert find("HMC", "rmse", "protein-tertiary-structure") == 3.91
    assert find("HMC", "rmse", "diabetes") is None
