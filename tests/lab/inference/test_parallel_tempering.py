import keras
import numpy as np
import pytest
from scipy import special

import tfbbb
from tfbbb.inference import HMC
from tfbbb.inference.chain_diagnostics import bulk_effective_size, r_hat
from tfbbb.inference.log_posterior import LogPosterior
from tfbbb.lab.inference import ParallelTempering

# y = w1 w2 x has the modes (a, b) and (-a, -b), with a saddle between them.
X = np.ones((20, 1), "float32")
Y = np.full(20, 1.0, "float32") + np.linspace(-0.4, 0.4, 20, dtype="float32")
NOISE, SCALE = 0.5, 1.0


@pytest.fixture(scope="module")
def target():
    inputs = keras.Input((1,))
    options = {"use_bias": False, "prior": tfbbb.priors.Normal(scale=SCALE)}
    hidden = tfbbb.layers.DenseVariational(1, **options)(inputs)
    outputs = tfbbb.layers.DenseVariational(1, **options)(hidden)
    likelihood = tfbbb.likelihoods.Normal(scale=NOISE, standardize=False)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    return LogPosterior(model, X, Y)


@pytest.fixture(scope="module")
def tempered(target):
    method = ParallelTempering(
        num_draws=1000,
        num_warmup=300,
        members=4,
        num_replicas=5,
        map_steps=50,
        jit_compile=False,
    )
    return method.sample(target)


def test_both_modes_have_their_share(tempered):
    draws, figures = tempered
    assert r_hat(draws).max() < 1.05
    assert (draws[..., 0] > 0).mean() == pytest.approx(0.5, abs=0.1)
    assert 0.5 < figures["acceptance"] < 0.98


def test_moments_are_those_of_quadrature(tempered):
    draws, _ = tempered
    axis = np.linspace(-4.5, 4.5, 601)
    first, second = np.meshgrid(axis, axis)
    log_prob = -0.5 * ((Y - (first * second)[..., None]) ** 2).sum(-1) / NOISE**2
    log_prob -= 0.5 * (first**2 + second**2) / SCALE**2
    prob = special.softmax(log_prob)
    # Even functions have no share of the modes in them.
    for function in (np.abs, np.square):
        expected = (prob * function(first)).sum()
        values = function(draws)
        size = bulk_effective_size(values)
        assert size.min() > 100.0
        error = values.std(axis=(0, 1)) / np.sqrt(size)
        assert np.abs((values.mean(axis=(0, 1)) - expected) / error).max() < 4.0


def test_one_replica_alone_stays_in_its_mode(target):
    method = HMC(
        num_draws=100,
        num_warmup=100,
        members=4,
        num_leapfrog_steps=10,
        map_steps=50,
        jit_compile=False,
    )
    draws, _ = method.sample(target)
    crossings = (np.diff(np.sign(draws[..., 0]), axis=0) != 0).mean()
    assert crossings < 0.05


def test_a_ladder_needs_two_temperatures():
    with pytest.raises(ValueError, match="at least two replicas"):
        ParallelTempering(num_replicas=1)
