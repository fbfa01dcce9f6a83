import re

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from tests.variational_weights import member_of, variational_weight
from tfbbb import posteriors

FAMILIES = [
    posteriors.MeanFieldNormal(),
    posteriors.LowRankNormal(rank=2),
    posteriors.FullCovarianceNormal(),
    posteriors.MatrixNormal("full"),
    posteriors.MatrixNormal("eigenbasis"),
]
SHAPES = [(4, 3), (2, 1, 2, 3), (5,), (1,)]
families = pytest.mark.parametrize("family", FAMILIES, ids=repr)
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)
# Each family with two shapes.
pairs = pytest.mark.parametrize(
    ("family", "shape"),
    [
        (family, SHAPES[(i + j) % 4])
        for i, family in enumerate(FAMILIES)
        for j in (0, 1)
    ],
    ids=repr,
)


def lower_triangular(log_scale, correlations):
    """Returns diag(exp(log_scale)) (I + C), with C filled as TFP fills triangles."""
    import tensorflow_probability as tfp

    size = len(log_scale)
    factor = np.eye(size)
    factor[1:, :-1] += np.asarray(tfp.math.fill_triangular(correlations))
    return np.exp(log_scale)[:, None] * factor


def covariance_of(weight):
    """Returns the covariance of the flat weights, from the family's definition."""
    values = {k: v.numpy().astype("float64") for k, v in weight.variables.items()}
    match weight.posterior:
        case posteriors.MeanFieldNormal():
            return np.diag(np.exp(2 * values["log_scale"].ravel()))
        case posteriors.LowRankNormal(rank=rank):
            factor = values["factor"].reshape(-1, rank)
            diagonal = np.diag(np.exp(2 * values["log_scale"].ravel()))
            return diagonal + factor @ factor.T
        case posteriors.FullCovarianceNormal():
            root = lower_triangular(values["log_scale"], values["correlations"])
            return root @ root.T
        case posteriors.MatrixNormal(covariance="eigenbasis"):
            basis = np.kron(values["row_basis"], values["column_basis"])
            return (basis * np.exp(2 * values["log_scale"].ravel())) @ basis.T
        case posteriors.MatrixNormal():
            row = values["row_log_scale"] - values["row_log_scale"].mean()
            roots = (
                lower_triangular(row, values["row_correlations"]),
                lower_triangular(
                    values["column_log_scale"], values["column_correlations"]
                ),
            )
            return np.kron(*(root @ root.T for root in roots))


@pairs
def test_draws_have_the_mean_and_the_covariance_of_q(family, shape):
    weight, count = variational_weight(family, shape=shape), 20_000
    draws = np.asarray(weight.draw(tf.constant([0, 1]), count)).reshape(count, -1)
    covariance = covariance_of(weight)
    variances = np.diag(covariance)
    # Gaussian standard errors; the 5th is exceeded in one of 1000 such suites.
    mean_error = np.sqrt(variances / count)
    deviation = np.abs(draws.mean(axis=0) - np.ravel(weight.mean))
    assert (deviation < 5 * mean_error).all()
    error = np.sqrt((np.outer(variances, variances) + covariance**2) / count)
    assert (np.abs(np.cov(draws.T) - covariance) < 5 * error).all()


@families
@shapes
def test_variance_is_the_diagonal_of_the_covariance(family, shape):
    weight = variational_weight(family, shape=shape)
    assert weight.variance.shape == shape
    np.testing.assert_allclose(
        np.ravel(weight.variance), np.diag(covariance_of(weight)), rtol=1e-5
    )


@families
@shapes
def test_log_prob_and_entropy_are_those_of_scipy(family, shape):
    weight = variational_weight(family, shape=shape)
    exact = stats.multivariate_normal(np.ravel(weight.mean), covariance_of(weight))
    draw = weight.draw(tf.constant([0, 2]))
    # Cancellation in the quadratic form: float32 keeps 4 digits of it.
    expected = exact.logpdf(np.ravel(draw))
    np.testing.assert_allclose(weight.log_prob(draw), expected, rtol=1e-4, atol=1e-3)
    entropy = family.entropy(weight.parameters, weight.shape)
    np.testing.assert_allclose(entropy, exact.entropy(), rtol=1e-5, atol=1e-5)


@pairs
def test_members_are_a_loop_over_single_posteriors(family, shape):
    weight = variational_weight(family, shape=shape, members=3)
    noise = weight.noise(tf.constant([0, 3]), samples=2)
    draws = weight.draw_from(noise)
    assert draws.shape == (6, *shape)
    densities = weight.log_prob(draws)
    entropies = family.entropy(weight.parameters, weight.shape)
    for k in range(3):
        member, of_member = member_of(weight, k), slice(2 * k, 2 * k + 2)
        close = {"rtol": 1e-4, "atol": 1e-5}
        np.testing.assert_allclose(
            draws[of_member], member.draw_from(noise[k]), **close
        )
        np.testing.assert_allclose(weight.mean[k], member.mean, **close)
        np.testing.assert_allclose(weight.variance[k], member.variance, **close)
        # Differences of squares of up to a thousand, which single precision rounds.
        expected = member.log_prob(draws[of_member])
        np.testing.assert_allclose(densities[of_member], expected, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(
            entropies[k], family.entropy(member.parameters, shape), **close
        )


@families
def test_starts_at_the_initial_scale_over_root_fan_in(family):
    weight = variational_weight(family, fan_in=25, spread=0.0)
    # The directions of a low rank add a hundredth of the variance, up to their draw.
    tolerance = 0.05 if isinstance(family, posteriors.LowRankNormal) else 1e-6
    np.testing.assert_allclose(weight.stddev, np.full((4, 3), 0.02), rtol=tolerance)


@families
def test_all_parameters_have_gradients_of_draws_and_of_log_prob(family):
    weight = variational_weight(family)
    values = [variable.value for variable in weight.variables.values()]
    with tf.GradientTape(persistent=True) as tape:
        draw = weight.draw(tf.constant([0, 4]))
        log_prob = weight.log_prob(tf.stop_gradient(draw))
    for target in (draw, log_prob):
        for gradient in tape.gradient(target, values):
            assert np.isfinite(gradient).all()
            assert np.any(gradient != 0)


@pytest.mark.parametrize("family", [*FAMILIES, posteriors.JointNormal(9)], ids=repr)
def test_serialized_families_come_back_equal(family):
    assert posteriors.get(posteriors.serialize(family)) == family


def test_unknown_families_are_refused_with_the_list_of_names():
    with pytest.raises(ValueError, match=r"'matrix_normal'.*'point'.*'planar_flow'"):
        posteriors.get("planar_flow")


@pytest.mark.parametrize("scale", [0.0, float("nan"), None, True, (1.0,)])
def test_refuses_an_initial_scale_that_is_not_positive_and_finite(scale):
    received = re.escape(f"Received: initial_scale={scale}")
    with pytest.raises(ValueError, match=received):
        posteriors.MeanFieldNormal(initial_scale=scale)


def test_matrix_normal_refuses_an_unknown_covariance():
    with pytest.raises(ValueError, match="Received: covariance='banded'"):
        posteriors.MatrixNormal("banded")


@pytest.mark.parametrize(
    ("name", "shape"),
    [("full_covariance_normal", (4097,)), ("matrix_normal", (4097, 1))],
)
def test_a_covariance_of_many_weights_is_refused_with_a_remedy(name, shape):
    with pytest.raises(ValueError, match=rf"'{name}'.*'low_rank_normal'.*=\(4097,"):
        variational_weight(name, shape=shape)


def test_scale_of_the_rows_of_a_matrix_normal_is_pinned():
    weight = variational_weight("matrix_normal")
    before = np.asarray(weight.variance)
    weight.variables["row_log_scale"].assign_add(np.full(4, 2.0))
    np.testing.assert_allclose(weight.variance, before, rtol=1e-5)
