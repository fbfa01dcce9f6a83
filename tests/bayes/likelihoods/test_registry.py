import pytest

from tfbbb import likelihoods
from tfbbb.bayes.likelihoods import Normal


@pytest.mark.parametrize("unknown", ["gaussian", None, 3, Normal])
def test_an_unknown_name_error_lists_the_names(unknown):
    with pytest.raises(ValueError, match=r"Pass one of .*'normal', .*Rec"):
        likelihoods.get(unknown)


def test_config_of_something_else_is_refused():
    from keras import layers

    with pytest.raises(ValueError, match="describes no likelihood"):
        likelihoods.deserialize(likelihoods.serialize(layers.Dense(1)))
