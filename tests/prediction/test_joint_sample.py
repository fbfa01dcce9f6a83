"""Coherent functions: all rows of a draw see the same weights."""

import numpy as np
import pytest

from tests.posterior_draws import assert_same_moments, brute_force_draws
from tests.prediction.recalibration.known_models import network

X = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")


@pytest.fixture(scope="module")
def loop():
    return brute_force_draws(network(spread=1.0), X, 1000)


@pytest.mark.few(1)
@pytest.mark.parametrize("method", ["local", "weight"])
def test_functions_are_those_of_a_loop_of_model_calls(method, loop):
    drawn = network(spread=1.0).predictive(X, 20, method).joint_sample(1000)
    assert drawn.shape == (1000, 4, 1)
    assert_same_moments(drawn, loop)
    # What rows share shows in their differences.
    assert_same_moments(drawn[:, :1] - drawn[:, 1:], loop[:, :1] - loop[:, 1:])


def test_draws_are_independent_of_each_other_and_follow_their_seed():
    prediction = network(spread=1.0).predictive(X, 20)
    drawn = prediction.joint_sample(2000, seed=3)[:, 0, 0]
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 4.0 / np.sqrt(2000)
    assert abs(np.corrcoef(drawn[1000:], drawn[:1000])[0, 1]) < 4.0 / np.sqrt(1000)
    again = prediction.joint_sample(2000, seed=3)[:, 0, 0]
    np.testing.assert_array_equal(again, drawn)
    assert not np.any(prediction.joint_sample(2000, seed=4)[:, 0, 0] == drawn)
    np.testing.assert_allclose(
        prediction.joint_sample(3), prediction.joint_sample(5)[:3]
    )


def test_members_take_turns():
    model = network(spread=1.0, members=3)
    for layer in model.variational_layers:
        for weight in layer.variational_weights:
            weight.variables["log_scale"].assign(
                weight.variables["log_scale"] * 0.0 - 20.0
            )
    drawn = model.predictive(X, 20).joint_sample(7)
    alone = [member.predictive(X, 4).mean for member in model.members]
    expected = [alone[k % 3] for k in range(7)]
    np.testing.assert_allclose(drawn, expected, rtol=1e-4, atol=1e-5)
