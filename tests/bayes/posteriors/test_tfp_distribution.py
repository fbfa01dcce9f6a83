import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tests.variational_weights import variational_weight
from tfbbb import posteriors
from tfbbb.bayes.posteriors import TFPDistribution

tfd = tfp.distributions


@keras.saving.register_keras_serializable(package="tests")
def student_t(loc, log_scale):
    return tfd.StudentT(5.0, loc, tf.exp(log_scale))


FAMILIES = [
    TFPDistribution(tfd.Laplace),
    TFPDistribution(student_t),
    TFPDistribution(tfd.StudentT, {"df": 6.0, "scale": 0.5}),
    TFPDistribution(tfd.MultivariateNormalDiag, {"scale_diag": 0.5}),
    TFPDistribution(tfd.MultivariateNormalTriL),
]
families = pytest.mark.parametrize("family", FAMILIES, ids=repr)


@pytest.mark.few(3)
@families
def test_draws_have_the_mean_and_variance_of_q(family):
    weight, count = variational_weight(family, shape=(2, 2)), 4000
    draw = tf.function(weight.draw)
    draws = np.asarray(draw(tf.constant([0, 1]), count), np.float64)
    mean, variance = draws.mean(axis=0), draws.var(axis=0)
    assert (np.abs(mean - weight.mean) < 5 * np.sqrt(variance / count)).all()
    # Heavy tails: the standard error from the draws themselves.
    fourth = ((draws - mean) ** 4).mean(axis=0)
    error = np.sqrt((fourth - variance**2) / count)
    assert (np.abs(variance - weight.variance) < 5 * error).all()


def test_starts_at_the_initializer_and_the_initial_scale():
    for family in (tfd.Laplace, student_t):
        weight = variational_weight(family, fan_in=25, spread=0.0)
        distribution = weight.posterior.distribution(weight.parameters)
        start = keras.initializers.RandomNormal(seed=1)((4, 3))
        np.testing.assert_allclose(distribution.loc, start, rtol=1e-6)
        np.testing.assert_allclose(distribution.scale, np.full((4, 3), 0.02), rtol=1e-5)


def test_discrete_distributions_are_not_reparameterised():
    family = TFPDistribution(tfd.Bernoulli, {"logits": 0.5})
    assert not family.reparameterised
    assert TFPDistribution(tfd.Laplace).reparameterised
    weight = variational_weight(family, shape=(50, 40), spread=0.0)
    draws = np.asarray(weight.draw(tf.constant([0, 6])))
    assert set(np.unique(draws)) == {0.0, 1.0}
    chance = 1 / (1 + np.exp(-0.5))
    error = np.sqrt(chance * (1 - chance) / draws.size)
    assert abs(draws.mean() - chance) < 4.5 * error
    expected = np.log(np.where(draws == 1, chance, 1 - chance)).sum()
    np.testing.assert_allclose(weight.log_prob(draws), expected, rtol=1e-4)


@families
def test_serialized_families_come_back_equal(family):
    again = posteriors.get(posteriors.serialize(family))
    assert again == family
    assert again.make is family.make


def test_a_matrix_starts_at_so_many_times_the_identity():
    weight = variational_weight(tfd.MultivariateNormalTriL, fan_in=25, spread=0.0)
    distribution = weight.posterior.distribution(weight.parameters)
    expected = np.broadcast_to(0.02 * np.eye(3), (4, 3, 3))
    np.testing.assert_allclose(distribution.scale_tril, expected, atol=1e-6)
    assert weight.variables["scale_tril"].value.shape == (4, 6)


def test_arguments_with_a_default_are_not_trained():
    def student_t(loc, log_scale, df=5.0):
        return tfd.StudentT(df, loc, tf.exp(log_scale))

    assert set(variational_weight(student_t).variables) == {"loc", "log_scale"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (functools.partial(tfd.StudentT, 4.0), r"saved by its name.*functools.partial"),
        (lambda loc: None, "must return a distribution.*Received: None"),
        (lambda loc: tfd.Normal(loc[..., :1], 1.0), r"weight of shape \(4, 3\)"),
        (lambda loc: tfd.Normal(0.0, 1.0), r"weight of shape \(4, 3\)"),
        (tfd.Normal(0.0, 1.0), "pass its class.*Received: posterior=<tfp"),
    ],
)
def test_refuses_what_makes_no_posterior(make, message):
    with pytest.raises(ValueError, match=message):
        variational_weight(make)


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (3, {}, "Received: make=3"),
        (tfd.StudentT, {}, r"no value for \['df'\]"),
        (tfd.Laplace, {"rate": 1.0}, r"unknown \['rate'\].*\['loc', 'scale'\]"),
        (tfd.Normal, {"scale": -1.0}, "outside of what `scale` of.*-1.0"),
        (tfd.Normal, {"scale": float("inf")}, "outside of what `scale` of.*inf"),
        (
            tfd.MultivariateNormalTriL,
            {"scale_tril": 0.0},
            "outside of what `scale_tril` of.*0.0",
        ),
    ],
)
def test_refuses_what_makes_no_distribution(make, values, message):
    with pytest.raises(ValueError, match=message):
        TFPDistribution(make, values)


def test_names_the_moment_that_tfp_does_not_know():
    weight = variational_weight(
        TFPDistribution(lambda loc: tfd.SinhArcsinh(loc, 1.0, skewness=0.5))
    )
    with pytest.raises(ValueError, match="no mean of SinhArcsinh"):
        _ = weight.mean
