import numpy as np
import pytest
import tensorflow as tf

from tests.variational_weights import member_of, variational_weight
from tfbbb import posteriors


@pytest.mark.parametrize("shape", [(4, 3), (2, 2, 3)], ids=str)
def test_draws_are_the_matrix_times_a_matrix_of_rank_one(shape):
    weight = variational_weight("rank_1", shape=shape)
    draw = np.asarray(weight.draw(tf.constant([0, 2])), np.float64)
    factors = draw / weight.variables["weights"].numpy()
    second = np.linalg.svd(factors, compute_uv=False)[..., 1]
    # Rounding of float32.
    assert (second < 1e-5 * np.abs(factors).max()).all()


def test_one_draw_scales_all_positions_of_a_convolution_alike():
    weight = variational_weight("rank_1", shape=(2, 2, 3))
    draw = np.asarray(weight.draw(tf.constant([0, 2])))
    factors = draw / weight.variables["weights"].numpy()
    np.testing.assert_allclose(factors[0], factors[1], rtol=1e-5)


def test_members_are_a_loop_over_single_posteriors():
    weight = variational_weight("rank_1", members=3)
    noise = weight.noise(tf.constant([0, 3]), samples=2)
    draws = weight.draw_from(noise)
    for k in range(3):
        member = member_of(weight, k)
        np.testing.assert_allclose(
            draws[2 * k : 2 * k + 2], member.draw_from(noise[k]), rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(weight.variance[k], member.variance, rtol=1e-5)


def test_starts_near_the_initial_scale_relative_to_the_matrix():
    weight = variational_weight("rank_1", spread=0.0)
    relative = weight.stddev / np.abs(weight.mean)
    # The product of the two variances adds a quarter percent.
    np.testing.assert_allclose(relative, np.full((4, 3), 0.1), rtol=2e-3)


@pytest.mark.parametrize("scale", [0.0, float("nan")])
def test_refuses_a_factor_scale_that_is_not_positive_and_finite(scale):
    with pytest.raises(ValueError, match=f"Received: factor_scale={scale}"):
        posteriors.Rank1(factor_scale=scale)
