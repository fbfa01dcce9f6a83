"""What is said of losses and noise that are known."""

import numpy as np
import pytest

from tfbbb.training.judging import describe_convergence

RNG = np.random.default_rng(0)


def of_losses(losses):
    return describe_convergence(losses, None, np.zeros(1), None)


def test_a_loss_that_still_falls_is_said_and_noise_is_not():
    epochs = np.arange(100)
    noise = 0.05 * RNG.normal(size=100)
    settled = 1.0 + np.exp(-epochs / 10) + noise
    assert of_losses(settled)["warnings"] == []
    falling = of_losses(5.0 - 0.02 * epochs + noise)
    assert falling["loss_drop"] == pytest.approx(0.2, abs=4 * 0.05 * np.sqrt(2 / 10))
    assert "still falling" in falling["warnings"][0]


def test_a_drop_that_is_a_small_part_of_the_whole_is_not_said():
    # As of a training at low temperatures with a learning rate that decays.
    losses = [15.3, *np.linspace(5.9, 4.9, 178)]
    found = of_losses(losses)
    assert found["loss_drop"] == pytest.approx(0.1, rel=0.05)
    assert found["warnings"] == []
    assert of_losses([15.3, 13.1, 12.5])["warnings"]


def test_a_few_epochs_tell_nothing():
    assert of_losses([3.0, 2.0])["loss_drop"] == 0.0


def test_noise_at_the_rounding_of_the_targets_is_said():
    targets = np.arange(50.0)[:, np.newaxis]

    def warnings(noise, resolution):
        variances = np.full((50, 1), noise**2)
        found = describe_convergence([], variances, targets, resolution)
        assert found["noise"] == pytest.approx(noise)
        return found["warnings"]

    assert "steps of 1:" in warnings(0.3, 1.0)[0]
    assert warnings(1.0, 1.0) == []
    assert "almost no noise" in warnings(1e-3, None)[0]
    assert warnings(0.3, None) == []
