import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

from tests.sklearn.estimators import line, regressor

PROGRAM = """
import pickle, sys
import numpy as np

with open(sys.argv[1], "rb") as file:
    model = pickle.load(file)
assert "tensorflow" not in sys.modules and "keras" not in sys.modules
rows = np.load(sys.argv[2])
np.save(sys.argv[3], np.stack(model.predict(rows, return_std=True)))
"""


@pytest.fixture(scope="module")
def fitted():
    """A mixture of members with a recalibration."""
    parameters = {"members": 4, "steps": 2}
    return regressor(**parameters, recalibration="variance_scaling").fit(*line())


def test_copies_answer_alike_to_the_last_bit(fitted):
    x, _ = line(9, seed=1)
    mean, std = fitted.predict(x, return_std=True)
    assert fitted.to_keras().recalibration is not None
    once = pickle.loads(pickle.dumps(fitted))
    for other in (once, copy.deepcopy(fitted), pickle.loads(pickle.dumps(once))):
        np.testing.assert_array_equal(other.predict(x), mean)
        np.testing.assert_array_equal(other.predict(x, return_std=True)[1], std)
        assert other.metrics_ == fitted.metrics_
        assert other.recipe_ == fitted.recipe_


@pytest.mark.slow
def test_another_process_answers_alike_to_the_last_bit(fitted, tmp_path):
    x, _ = line(9, seed=1)
    paths = [tmp_path / name for name in ("model", "x.npy", "found.npy")]
    paths[0].write_bytes(pickle.dumps(fitted))
    np.save(paths[1], x)
    subprocess.run([sys.executable, "-c", PROGRAM, *map(str, paths)], check=True)
    np.testing.assert_array_equal(
        np.load(paths[2]), np.stack(fitted.predict(x, return_std=True))
    )


@pytest.mark.slow
def test_a_copy_goes_on_with_new_rows():
    x, y = line(80)
    model = regressor(kl_schedule="constant", steps=20).partial_fit(x[:40], y[:40])
    other = pickle.loads(pickle.dumps(model))
    for each in (model, other):
        each.partial_fit(x[40:], y[40:])
    np.testing.assert_array_equal(other.predict(x), model.predict(x))


def test_a_clone_is_not_fitted(fitted):
    other = clone(fitted)
    assert other.get_params() == fitted.get_params()
    assert not hasattr(other, "metrics_")
