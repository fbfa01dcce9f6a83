import json

import pytest
import tensorflow_probability as tfp

from tfbbb import priors

tfd = tfp.distributions

PRIORS = [
    priors.Normal(),
    priors.Normal(0.5),
    priors.Normal(0.5, trainable=True),
    priors.ScaleMixtureNormal(0.25, 2.0, 0.01),
    priors.Laplace(0.5),
    priors.StudentT(3.0, 0.5),
    priors.Horseshoe(0.1),
    priors.GammaNormal(3.0, 2.0),
    priors.EmpiricalNormal(),
]


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_serialized_priors_come_back_equal(prior):
    config = json.loads(json.dumps(priors.serialize(prior)))
    assert priors.deserialize(config) == prior
    assert priors.get(config) == prior
    assert hash(priors.get(prior)) == hash(prior)


def test_priors_with_other_arguments_differ():
    for index, prior in enumerate(PRIORS):
        for other in PRIORS[index + 1 :]:
            assert prior != other


def test_from_posterior_by_name_says_what_to_pass():
    with pytest.raises(ValueError, match=r"FromPosterior\(model\)"):
        priors.get("from_posterior")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: priors.Normal(scale=0.0), "scale=0.0"),
        (lambda: priors.Normal(scale="fan_out"), "scale='fan_out'"),
        (lambda: priors.Normal(scale=True), "scale=True"),
        (lambda: priors.Laplace(scale=-1.0), "scale=-1.0"),
        (lambda: priors.Horseshoe(scale=0.0), "scale=0.0"),
        (lambda: priors.StudentT(df=0.0), "df=0.0"),
        (lambda: priors.StudentT(scale=0.0), "scale=0.0"),
        (lambda: priors.GammaNormal(shape=0.0), "shape=0.0"),
        (lambda: priors.GammaNormal(rate=float("inf")), "rate=inf"),
        (lambda: priors.ScaleMixtureNormal(pi=1.0), "pi=1.0"),
        (lambda: priors.ScaleMixtureNormal(scale1=-1.0), "scale1=-1.0"),
        (lambda: priors.ScaleMixtureNormal(scale2=float("inf")), "scale2=inf"),
        (lambda: priors.TFPDistribution(3), "distribution=3"),
        (lambda: priors.FromPosterior("model"), "model='model'"),
        (lambda: priors.get("spike"), "prior='spike'"),
        (lambda: priors.get(priors.Normal), "prior=<class"),
        (lambda: priors.get(tfd.Laplace), "prior=<class"),
    ],
)
def test_refuses_arguments_that_make_no_distribution(make, message):
    with pytest.raises(ValueError, match=f"Received: {message}"):
        make()
