import json

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tests.variational_weights import variational_weight
from tfbbb import priors

tfd = tfp.distributions


@keras.saving.register_keras_serializable(package="tests")
def cauchy_over_fan_in(shape, fan_in):
    return tfd.Independent(tfd.Cauchy(tf.zeros(shape), 1.0 / fan_in), len(shape))


PRIORS = [
    tfd.Laplace(0.0, 1.0),
    tfd.Normal(tf.zeros((3,)), np.float32([1.0, 2.0, 3.0])),
    tfd.MultivariateNormalDiag(scale_diag=np.float32([1.0, 2.0, 3.0])),
    tfd.Independent(tfd.StudentT(3.0, tf.zeros((4, 3)), 1.0), 2),
    tfd.MixtureSameFamily(
        tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal([0.0, 0.0], [1.0, 0.01])
    ),
    tfd.TransformedDistribution(
        tfd.StudentT(3.0, 0.0, 1.0),
        tfp.bijectors.Chain([tfp.bijectors.Shift(0.1), tfp.bijectors.Scale(0.5)]),
    ),
    cauchy_over_fan_in,
]
each_prior = pytest.mark.parametrize(
    "prior", PRIORS, ids=lambda prior: getattr(prior, "__name__", str(prior))
)


@each_prior
def test_log_prob_sums_that_of_the_distribution(prior):
    weight = variational_weight(prior=prior)
    draws = weight.draw(tf.constant([0, 1]), samples=2)
    distribution = prior(weight.shape, weight.fan_in) if callable(prior) else prior
    for draw, log_prob in zip(draws, weight.prior_log_prob(draws), strict=True):
        np.testing.assert_allclose(
            log_prob, np.sum(distribution.log_prob(draw)), rtol=1e-5
        )


@each_prior
def test_serialized_priors_come_back_equal_and_with_the_same_density(prior):
    prior = priors.get(prior)
    again = priors.get(json.loads(json.dumps(priors.serialize(prior))))
    assert again == prior
    draw = variational_weight().draw(tf.constant([0, 2]))
    densities = [p.log_prob({}, draw, (4, 3), 4) for p in (prior, again)]
    np.testing.assert_array_equal(*densities)


@pytest.mark.parametrize(
    "distribution",
    [
        tfd.Normal(tf.zeros((2,)), 1.0),
        tfd.Normal(tf.zeros((5, 4, 3)), 1.0),
        tfd.MultivariateNormalDiag(scale_diag=tf.ones((4,))),
    ],
    ids=["batch", "rank", "event"],
)
def test_refuses_a_distribution_of_another_shape(distribution):
    with pytest.raises(ValueError, match=r"'dense/kernel' of shape \(4, 3\)"):
        variational_weight(prior=distribution, path="dense/kernel")


def test_says_what_to_pass_where_a_distribution_cannot_be_saved():
    scale = tf.linalg.LinearOperatorDiag([1.0, 2.0, 3.0])
    prior = priors.get(tfd.MultivariateNormalLinearOperator(scale=scale))
    with pytest.raises(ValueError, match=r"cannot be saved.*`\(shape, fan_in\)`"):
        priors.serialize(prior)


def test_refuses_variables_that_nobody_would_train():
    prior = tfd.Normal(0.0, tf.Variable(1.0))
    with pytest.raises(ValueError, match=r"not be trained.*trainable=True"):
        variational_weight(prior=prior)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: tfd.Normal(0.0, 1.0), r"\(shape, fan_in\).*takes 0|too many"),
        (lambda size, bias, dtype: tfd.Normal(0.0, 1.0), r"\(shape, fan_in\).*missing"),
        (lambda shape, fan_in: 1.0, r"must return a distribution.*Received: 1.0 from"),
    ],
    ids=["none", "three", "number"],
)
def test_refuses_a_function_that_makes_no_distribution(function, message):
    with pytest.raises(ValueError, match=message):
        variational_weight(prior=function)
