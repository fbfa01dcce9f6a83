"""The same question has the same answer bit for bit in any process."""

import contextlib
import io
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import keras, numpy as np, tfbbb
keras.utils.set_random_seed(int(sys.argv[1]))
inputs = keras.Input((3,))
hidden = tfbbb.layers.DenseVariational(6, "tanh", members=2)(inputs)
hidden = keras.layers.Dropout(0.3)(hidden)
outputs = tfbbb.layers.DenseVariational(2, members=2)(hidden)
model = keras.Model(inputs, outputs)
model.set_weights([
    np.cos(np.arange(w.size)).reshape(w.shape) - 2.0 * (w.mean() < -1.0)
    for w in model.get_weights()
])
if sys.argv[2] == "after others":
    warm = np.ones((9, 3), "float32")
    for seed in range(3):
        tfbbb.predictive(model, warm, likelihood=tfbbb.likelihoods.Normal(scale=1.0))
likelihood = tfbbb.likelihoods.Normal(heteroscedastic=True)
x = np.sin(np.arange(12.0)).reshape(4, 3)
for options in (
    {"method": "local"},
    {"method": "weight"},
    {"method": "weight", "max_memory_mb": 0.01},
    {"method": "local", "include_dropout": True, "seed": -7},
):
    found = tfbbb.predictive(model, x, likelihood=likelihood, **options)
    for values in (
        found.mean,
        found.variance,
        found.epistemic,
        found.between_members,
        found.quantile([0.1, 0.7]),
        found.log_prob(np.arange(4.0)),
        found.sample(3),
    ):
        print(values.tobytes().hex())
"""


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_functions")
def test_answers_are_the_same_in_another_process(monkeypatch):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "0", "at once"],
        capture_output=True,
        text=True,
        check=True,
    )
    expected = done.stdout.split()
    assert len(expected) == 4 * 7
    # With another state of the global generators, and after other predictions.
    monkeypatch.setattr(sys, "argv", ["", "1", "after others"])
    found = io.StringIO()
    with contextlib.redirect_stdout(found):
        exec(PROGRAM, {})
    assert found.getvalue().split() == expected
