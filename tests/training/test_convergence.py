"""What is said of losses, members and noise that are known."""

import numpy as np
import pytest

from tfbbb.training.convergence import describe_convergence
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.temperature_choice import _gaps

NO_GAPS = np.zeros((0, 2))
RNG = np.random.default_rng(0)


def test_a_loss_that_still_falls_is_said_and_noise_is_not():
    epochs = np.arange(100)
    noise = 0.05 * RNG.normal(size=100)
    settled = 1.0 + np.exp(-epochs / 10) + noise
    assert describe_convergence(settled, NO_GAPS)["warnings"] == []
    falling = describe_convergence(5.0 - 0.02 * epochs + noise, NO_GAPS)
    assert falling["loss_drop"] == pytest.approx(0.2, abs=4 * 0.05 * np.sqrt(2 / 10))
    assert "still falling" in falling["warnings"][0]


def test_a_drop_that_is_a_small_part_of_the_whole_is_not_said():
    # As of a training at low temperatures with a learning rate that decays.
    losses = [15.3, *np.linspace(5.9, 4.9, 178)]
    found = describe_convergence(losses, NO_GAPS)
    assert found["loss_drop"] == pytest.approx(0.1, rel=0.05)
    assert found["warnings"] == []
    assert describe_convergence([15.3, 13.1, 12.5], NO_GAPS)["warnings"]


def test_a_few_epochs_tell_nothing():
    assert describe_convergence([3.0, 2.0], NO_GAPS)["loss_drop"] is None


def test_a_member_that_predicts_worse_than_the_others_is_named():
    gaps = np.array([[0.01, 0.05], [0.9, 0.1], [-0.9, 0.1]])
    (warning,) = describe_convergence([], gaps)["warnings"]
    assert "member 2" in warning
    assert "0.9 nats" in warning
    gaps[1, 1] = 0.3
    assert describe_convergence([], gaps)["warnings"] == []


def test_the_gap_of_a_member_is_of_the_rows_that_it_left_out():
    members = MemberRows.draw(40, (1.0, 0.1), 4, 2)
    log_prob = np.zeros((2, 40))
    # Member 3 is the first fold of the second repeat.
    log_prob[1, members.folds[1] == 0] = -1.0
    gaps = _gaps(log_prob, members)
    assert gaps.shape == (4, 2)
    np.testing.assert_allclose(gaps[2:, 0], [0.5, 0.0])
    # The other member of these rows is better than the mean of the two.
    assert gaps[:2, 0].sum() == pytest.approx(-0.5)
    whole = MemberRows.draw(40, (1.0,), 2, 0)
    np.testing.assert_allclose(_gaps(log_prob, whole)[:, 0].sum(), 0.0, atol=1e-12)


def test_noise_at_the_rounding_of_the_targets_is_said():
    targets = np.arange(50.0)[:, np.newaxis]

    def warnings(noise, resolution):
        variances = np.full((50, 1), noise**2)
        found = describe_convergence([], NO_GAPS, variances, targets, resolution)
        assert found["noise"] == pytest.approx(noise)
        return found["warnings"]

    assert "steps of 1:" in warnings(0.3, 1.0)[0]
    assert warnings(1.0, 1.0) == []
    assert "almost no noise" in warnings(1e-3, None)[0]
    assert warnings(0.3, None) == []
