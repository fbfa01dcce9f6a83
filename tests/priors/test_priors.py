import keras
import numpy as np
import pytest
from scipy import stats

from tfbbb import priors

WEIGHTS = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")


@pytest.mark.parametrize(("scale", "expected"), [("fan_in", 0.5), (0.3, 0.3), (2, 2.0)])
def test_normal_sums_the_log_density_of_its_scale(scale, expected):
    log_prob = priors.Normal(scale=scale).log_prob(WEIGHTS, fan_in=4)
    exact = stats.norm.logpdf(WEIGHTS, scale=expected).sum()
    np.testing.assert_allclose(log_prob, exact, rtol=1e-5)


def test_scale_mixture_normal_sums_the_log_density_of_the_mixture():
    prior = priors.ScaleMixtureNormal(pi=0.25, scale1=1.5, scale2=0.05)
    exact = np.log(
        0.25 * stats.norm.pdf(WEIGHTS, scale=1.5)
        + 0.75 * stats.norm.pdf(WEIGHTS, scale=0.05)
    ).sum()
    np.testing.assert_allclose(prior.log_prob(WEIGHTS, fan_in=4), exact, rtol=1e-5)


def test_scale_mixture_normal_stays_finite_far_out_in_both_tails():
    prior = priors.ScaleMixtureNormal(pi=0.5, scale1=1.0, scale2=np.exp(-8.0))
    assert np.isfinite(prior.log_prob(np.float32([0.0, 1e-6, 30.0]), fan_in=1))


@pytest.mark.parametrize(
    "prior",
    [priors.Normal(), priors.Normal(0.5), priors.ScaleMixtureNormal(0.25, 2.0, 0.01)],
)
def test_serialized_priors_come_back_equal(prior):
    assert priors.deserialize(priors.serialize(prior)) == prior
    assert priors.get(priors.serialize(prior)) == prior
    assert hash(priors.get(prior)) == hash(prior)


def test_priors_with_other_arguments_differ():
    assert priors.Normal(0.5) != priors.Normal(0.25)
    assert priors.Normal() != priors.ScaleMixtureNormal()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: priors.Normal(scale=0.0), "scale=0.0"),
        (lambda: priors.Normal(scale=float("nan")), "scale=nan"),
        (lambda: priors.Normal(scale="fan_out"), "scale='fan_out'"),
        (lambda: priors.ScaleMixtureNormal(pi=1.0), "pi=1.0"),
        (lambda: priors.ScaleMixtureNormal(scale1=-1.0), "scale1=-1.0"),
        (lambda: priors.ScaleMixtureNormal(scale2=float("inf")), "scale2=inf"),
    ],
)
def test_refuses_arguments_that_make_no_distribution(make, message):
    with pytest.raises(ValueError, match=f"Received: {message}"):
        make()


def test_deserialize_refuses_another_kind_of_object():
    with pytest.raises(ValueError, match="describes no prior"):
        priors.get(keras.saving.serialize_keras_object(keras.initializers.Zeros()))
