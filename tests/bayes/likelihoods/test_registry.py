import json

import pytest

from tfbbb import likelihoods
from tfbbb.bayes.likelihoods import (
    Beta,
    Categorical,
    Gamma,
    Normal,
    NormalMixture,
    StudentT,
)


def test_get_returns_an_object_unchanged():
    likelihood = Normal(scale=2.0)
    assert likelihoods.get(likelihood) is likelihood


@pytest.mark.parametrize(
    "likelihood",
    [
        Normal(scale=2.0),
        Normal(heteroscedastic=True, standardize=False),
        StudentT(df=4.0, scale=0.1),
        Gamma(concentration=2),
        Beta(low=-1.0, high=100),
        NormalMixture(components=3),
        Categorical(),
    ],
)
def test_likelihoods_are_restored_from_json(likelihood):
    config = json.loads(json.dumps(likelihoods.serialize(likelihood)))
    for again in (likelihoods.deserialize(config), likelihoods.get(config)):
        assert type(again) is type(likelihood)
        assert again.get_config() == likelihood.get_config()


@pytest.mark.parametrize("unknown", ["gaussian", None, 3, Normal])
def test_an_unknown_name_error_lists_the_names(unknown):
    with pytest.raises(ValueError, match=r"Pass one of .*'normal', .*Rec"):
        likelihoods.get(unknown)


def test_config_of_something_else_is_refused():
    from keras import layers

    with pytest.raises(ValueError, match="describes no likelihood"):
        likelihoods.deserialize(likelihoods.serialize(layers.Dense(1)))
