"""Convolutions where TensorFlow runs without oneDNN, as on many machines."""

import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import keras, numpy as np, tensorflow as tf, tfbbb
from tfbbb.inference.network_function import NetworkFunction
keras.utils.set_random_seed(0)
inputs = keras.Input((5, 5, 2))
hidden = tfbbb.layers.Conv2DVariational(3, 3, activation="relu")(inputs)
hidden = tfbbb.layers.Conv2DVariational(2, 2, activation="tanh")(hidden)
outputs = tfbbb.layers.DenseVariational(1)(keras.layers.Flatten()(hidden))
likelihood = tfbbb.likelihoods.Normal(scale=1.0, standardize=False)
model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
x = np.sin(np.arange(100.0, dtype="float32")).reshape(2, 5, 5, 2)
for method in ("weight", "linearised"):
    print(*model.predictive(x, num_samples=4, method=method).mean.ravel())
network = NetworkFunction(model)
vectors = tf.repeat(network.means(), 3, axis=0)

@tf.function
def gradient():
    with tf.GradientTape() as tape:
        tape.watch(vectors)
        total = tf.reduce_sum(network.outputs(network.split(vectors), x))
    return tape.gradient(total, vectors)

print(*gradient().numpy().sum(axis=0))
"""


@pytest.fixture(scope="module")
def answers():
    """Returns two predictions and a gradient, with oneDNN and without it."""
    return {
        onednn: [
            np.array(line.split(), float)
            for line in subprocess.run(
                [sys.executable, "-c", PROGRAM],
                env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": onednn},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout.splitlines()
        ]
        for onednn in "01"
    }


@pytest.mark.slow
@pytest.mark.parametrize("index", range(3), ids=["weight", "linearised", "gradient"])
def test_convolutions_need_no_onednn(answers, index):
    # Single precision, summed in another order.
    np.testing.assert_allclose(
        answers["0"][index], answers["1"][index], rtol=1e-4, atol=1e-5
    )
