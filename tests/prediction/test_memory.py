"""Answers do not depend on the memory that there is, and stay within it."""

import subprocess
import sys

import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.bayes.likelihoods import Normal
from tfbbb.layers import Conv1DVariational, DenseVariational

X = np.random.default_rng(0).normal(size=(7, 6)).astype("float32")


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    inputs = keras.Input((6,))
    hidden = keras.layers.Reshape((6, 1))(inputs)
    hidden = keras.layers.Flatten()(Conv1DVariational(4, 3, activation="relu")(hidden))
    hidden = DenseVariational(8, "relu")(hidden)
    return tfbbb.BayesianModel(
        inputs,
        DenseVariational(2)(hidden),
        likelihood=Normal(heteroscedastic=True),
        members=2,
    )


@pytest.mark.parametrize(("method", "megabytes"), [("local", 1e-4), ("weight", 0.05)])
def test_answers_do_not_depend_on_how_the_work_is_cut(model, method, megabytes):
    y = np.linspace(-1.0, 1.0, 7)
    whole = model.predictive(X, 60, method)
    cut = model.predictive(X, 60, method, max_memory_mb=megabytes)
    for name in ("mean", "epistemic", "aleatoric", "between_members"):
        np.testing.assert_allclose(
            getattr(cut, name), getattr(whole, name), rtol=2e-5, atol=1e-6
        )
    np.testing.assert_allclose(cut.quantile(0.9), whole.quantile(0.9), rtol=2e-5)
    np.testing.assert_allclose(cut.log_prob(y), whole.log_prob(y), rtol=2e-5)
    np.testing.assert_allclose(cut.sample(3), whole.sample(3), rtol=1e-4, atol=1e-5)


PROGRAM = """
import os, resource, sys
import keras, numpy as np, tfbbb, tfbbb.model, tfbbb.prediction
# Each method has a process of its own, which need not import these again.
for method in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        break
    assert os.waitpid(child, 0)[1] == 0
else:
    sys.exit()
keras.utils.set_random_seed(0)
inputs = keras.Input((50,))
hidden = tfbbb.layers.DenseVariational(100, "relu")(inputs)
model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
model.likelihood.adapt([[0.0], [1.0]])
x = np.zeros((100, 50), "float32")
model.predictive(x[:2], 10, method, max_memory_mb=64)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model.predictive(x, 10_000, method, max_memory_mb=64)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
def test_memory_is_bounded_whatever_the_number_of_rows_and_samples():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "local", "weight"],
        capture_output=True,
        text=True,
        check=True,
    )
    # All activations of the hidden layer would be 400 MB.
    local, weight = map(float, done.stdout.split())
    assert local < 4 * 64
    assert weight < 4 * 64
