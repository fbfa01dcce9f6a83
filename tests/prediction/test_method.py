import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.layers import DenseVariational
from tfbbb.likelihoods import Normal
from tfbbb.prediction.method import METHODS, resolve_method


def network(*units):
    layers = [DenseVariational(width, kl_weight=0.1) for width in units]
    return keras.Sequential([keras.Input((10,)), *layers])


@pytest.fixture(scope="module")
def deep():
    return network(50, 50, 1)


def test_named_method_is_taken_at_its_word(deep):
    for method in METHODS:
        for num_rows in (1, 10**6):
            assert resolve_method(deep, method, num_rows) == method


def test_auto_draws_weights_only_where_the_rows_are_many(deep):
    methods = [resolve_method(deep, "auto", 2**power) for power in range(16)]
    few = methods.count("local")
    assert methods == ["local"] * few + ["weight"] * (len(methods) - few)
    # At some hundred rows, a second product per row costs what the normals cost.
    assert 2**6 < 2**few < 2**10


def test_auto_never_draws_weights_of_a_single_layer():
    # Its mean and variance are computed once for all samples.
    assert resolve_method(network(100), "auto", 10**6) == "local"


def test_auto_gives_the_answer_of_the_method_that_it_takes(deep):
    likelihood = Normal(scale=1.0)
    for num_rows in (2, 2000):
        x = np.random.default_rng(0).normal(size=(num_rows, 10))
        auto, named = (
            tfbbb.predictive(deep, x, likelihood=likelihood, num_samples=5, method=name)
            for name in ("auto", resolve_method(deep, "auto", num_rows))
        )
        np.testing.assert_array_equal(auto.mean, named.mean)
