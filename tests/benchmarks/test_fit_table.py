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


def test_texts_become_indicators_and_unknown_ones_none(rows):
    _, test = rows.encoded()
    assert test[:, 1:].tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_conformal_intervals_reach_to_the_ninetieth_of_99_residuals(fit_table):
    found = fit_table.normals(np.array([1.0, 5.0]), np.array([1.0, 0.5]))
    interval = fit_table.with_conformal_interval(found, np.arange(1.0, 100.0))[
        "interval"
    ]
    np.testing.assert_allclose(interval, [[1 - 90, 5 - 45], [1 + 90, 5 + 45]])


def test_files_and_arrays_are_read_alike(fit_table, tmp_path):
    for name in ("train", "test"):
        (tmp_path / name).write_text('x,y\n1.5,"$2,000.5"\n2.5,$3\n')
    places = {name: str(tmp_path / name) for name in ("train", "test")}
    given = {"task": "regression", "seed": 0, "target": "y"}
    of_files = fit_table.read({**places, **given})
    x, y = np.array([[1.5], [2.5]]), np.array([2000.5, 3.0])
    of_arrays = fit_table.read({"x_train": x, "y_train": y, "x_test": x, **given})
    for rows in (of_files, of_arrays):
        assert rows.train.to_numpy().tolist() == x.tolist()
        assert rows.y.tolist() == y.tolist()
