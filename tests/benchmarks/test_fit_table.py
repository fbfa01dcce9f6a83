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
