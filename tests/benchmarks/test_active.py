import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from tests.benchmarks.programs import load, run_smoke

active = load("active")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A directory with a table of scikit-learn in place of `energy`."""
    directory = tmp_path_factory.mktemp("data")
    x, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    (directory / "uci").mkdir()
    np.savez(
        directory / "uci" / "energy.npz",
        data=np.column_stack([x, y]),
        index_features=np.arange(10),
        index_target=10,
        train_idx=order[np.newaxis, :300],
        test_idx=order[np.newaxis, 300:],
    )
    return directory


def test_pool_is_in_standard_units_and_holds_no_test_row(data):
    x, y, x_test, y_test = active.table(data, "energy", 0)
    np.testing.assert_allclose(x.mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(x.std(axis=0), 1.0, rtol=1e-5)
    assert len(x) == len(y) == 300
    rows = {tuple(row) for row in x.tolist()}
    assert not rows & {tuple(row) for row in x_test.tolist()}
    assert len(y_test) == 142


def test_smoke_run_learns_from_the_labels(data, tmp_path):
    measured = run_smoke("active", data, tmp_path / "active.json")
    spread = active.table(data, "energy", 0)[3].std()
    assert {record["method"] for record in measured.records} == {
        active.RANDOM,
        "bald, batch",
    }
    for record in measured.records:
        assert record["labels"] == [20, 35]
        # 35 rows tell little, but more than nothing goes wrong.
        assert record["error"][-1] < 1.3 * spread
    assert active.RANDOM in active.report(measured)


def test_a_directory_without_the_tables_is_refused(tmp_path):
    with pytest.raises(SystemExit, match=r"energy\.npz.*Received"):
        run_smoke("active", tmp_path, tmp_path / "active.json")
