"""Predictions stay within the memory that they may take."""

import subprocess
import sys

import pytest

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
