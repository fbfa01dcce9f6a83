import numpy as np
import pandas as pd
import pytest

from tests.benchmarks.programs import FOLDER, load

peers = load("table_peers")


@pytest.fixture(scope="module")
def fit_table():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER / "peers")
        yield load("fit_table")


@pytest.fixture
def rows(fit_table):
    """Ten rows of a number and a text; four to predict, whose size is odd once."""
    train = pd.DataFrame({"size": np.arange(10.0), "kind": list("ababababab")})
    test = pd.DataFrame({"size": [1.0, 2.0], "kind": ["a", "new"]})
    return fit_table.Rows(train, np.arange(10.0) ** 2, test, None, 0)


def test_every_method_has_an_environment(fit_table):
    assert fit_table.METHODS.keys() == peers.PEERS.keys()


def test_folds_leave_out_each_row_once(rows):
    parts = list(rows.folds(3))
    assert sorted(np.concatenate([fold for _, fold in parts])) == list(range(10))
    for rest, fold in parts:
        assert sorted([*rest, *fold]) == list(range(10))


def test_texts_become_indicators_and_unknown_ones_none(rows):
    _, test = rows.encoded()
    assert test[:, 1:].tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_tuning_keeps_the_least_loss_with_its_mean_size(fit_table, rows):
    def fit(candidate, rest, fold):
        loss = {"a": 2.0, "b": 1.0}[candidate["name"]]
        return loss, len(fold), np.full(len(fold), loss)

    options, scaled = fit_table.tune(rows, [{"name": "a"}, {"name": "b"}], fit, 3)
    assert options == {"name": "b", "rounds": 4}
    assert scaled.tolist() == [1.0] * 10


def test_conformal_intervals_reach_to_the_ninetieth_of_99_residuals(fit_table):
    found = fit_table.normals(np.array([1.0, 5.0]), np.array([1.0, 0.5]))
    interval = fit_table.with_conformal_interval(found, np.arange(1.0, 100.0))[
        "interval"
    ]
    np.testing.assert_allclose(interval, [[1 - 90, 5 - 45], [1 + 90, 5 + 45]])


def test_files_and_arrays_are_read_alike(fit_table, tmp_path):
    for name in ("train", "test"):
        (tmp_path / name).write_text("x;y\n1,5;$2,000.5\n2,5;$3\n")
    places = {name: str(tmp_path / name) for name in ("train", "test")}
    given = {"task": "regression", "seed": 0, "target": "y", "separator": ";"}
    of_files = fit_table.read({**places, **given, "decimal": ","})
    x, y = np.array([[1.5], [2.5]]), np.array([2000.5, 3.0])
    of_arrays = fit_table.read({"x_train": x, "y_train": y, "x_test": x, **given})
    for rows in (of_files, of_arrays):
        assert rows.train.to_numpy().tolist() == x.tolist()
        assert rows.y.tolist() == y.tolist()


@pytest.mark.parametrize(
    ("method", "task", "known"),
    [
        ("crepes", "classification", False),
        ("crepes", "regression", True),
        ("catboost_tuned", "classification", True),
    ],
)
def test_methods_of_numbers_learn_no_classes(method, task, known):
    assert peers.knows(method, task) == known
