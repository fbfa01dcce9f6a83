import math

import keras
import numpy as np
import pytest
from scipy import stats

import tfbbb
from tfbbb import priors
from tfbbb.bayes.likelihoods import Normal
from tfbbb.lab.evidence import description_length
from tfbbb.layers import DenseVariational
from tfbbb.model.compression import prune

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(30, 3)).astype("float32")
Y = (X @ [[1.0], [-2.0], [0.0]] + 0.3).astype("float32")


def with_noise(inputs, outputs):
    """Returns a model whose noise has the standard deviation 0.7."""
    noise = Normal(scale=0.7, standardize=False)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=noise)


def linear(prior="normal"):
    """Returns f(x) = x w + b with a known posterior."""
    inputs, layer = keras.Input((3,)), DenseVariational(1, prior=prior)
    model = with_noise(inputs, layer(inputs))
    kernel, bias = layer.variational_weights
    kernel.variables["mean"].assign([[1.0], [-2.0], [0.01]])
    kernel.variables["log_scale"].assign(np.log([[0.1], [0.2], [0.3]]))
    bias.variables["mean"].assign([0.25])
    bias.variables["log_scale"].assign(np.log([0.05]))
    return model


def exact_data_bits(mean, variance, bias, bias_variance):
    """E_q of the squared error of a linear model: of its mean, plus its variance."""
    mean, variance = np.reshape(mean, (3, 1)), np.reshape(variance, (3, 1))
    errors = (Y - X @ mean - bias) ** 2 + X**2 @ variance + bias_variance
    nats = errors / (2 * 0.7**2) + 0.5 * np.log(2 * np.pi * 0.7**2)
    return nats.sum() / math.log(2)


def exact_divergence_bits(mean, stddev, prior):
    mean, stddev = np.array(mean), np.array(stddev)
    nats = np.log(prior / stddev) + (stddev**2 + mean**2) / (2 * prior**2) - 0.5
    return nats.sum() / math.log(2)


def test_a_linear_model_has_the_length_computed_by_hand():
    length = description_length(linear(), X, Y, num_samples=400)
    kernel = exact_divergence_bits([1.0, -2.0, 0.01], [0.1, 0.2, 0.3], 3**-0.5)
    bias = exact_divergence_bits([0.25], [0.05], 1.0)
    np.testing.assert_allclose(length.weight_bits, kernel + bias, rtol=1e-5)
    data = exact_data_bits([1.0, -2.0, 0.01], [0.01, 0.04, 0.09], 0.25, 0.0025)
    assert abs(length.data_bits - data) < 4 * length.data_bits_standard_error
    # The error itself is a few per cent of what there is to know.
    assert length.data_bits_standard_error < 0.05 * data
    assert length.mask_bits == 0.0
    assert length.total == length.weight_bits + length.data_bits


def test_a_pruned_model_pays_for_kept_weights_and_mask():
    pruned = prune(linear(), 0.25)
    length = description_length(pruned, X, Y, num_samples=400)
    kernel = exact_divergence_bits([1.0, -2.0], [0.1, 0.2], 3**-0.5)
    bias = exact_divergence_bits([0.25], [0.05], 1.0)
    np.testing.assert_allclose(length.weight_bits, kernel + bias, rtol=1e-5)
    np.testing.assert_allclose(length.mask_bits, 2.0, rtol=1e-12)  # one of four
    data = exact_data_bits([1.0, -2.0, 0.0], [0.01, 0.04, 0.0], 0.25, 0.0025)
    assert abs(length.data_bits - data) < 4 * length.data_bits_standard_error


def test_without_weights_only_the_data_cost_bits():
    pruned = prune(linear(), 1.0)
    length = description_length(pruned, X, Y)
    assert (length.weight_bits, length.mask_bits) == (0.0, 0.0)
    data = -stats.norm.logpdf(Y, 0.0, 0.7).sum() / math.log(2)
    np.testing.assert_allclose(length.data_bits, data, rtol=1e-6)


def mixture():
    inputs, layer = keras.Input((3,)), DenseVariational(1, members=2)
    return with_noise(inputs, layer(inputs))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: description_length(linear(), X, Y, num_samples=1), "num_samples=1"),
        (lambda: description_length(linear(), X, Y[:9]), "9 targets"),
        (lambda: description_length(mixture(), X, Y), "2 members"),
        (
            lambda: description_length(
                prune(linear(priors.ScaleMixtureNormal(0.25, 1.0, 0.1)), 0.25), X, Y
            ),
            r"kernel with prior=ScaleMixtureNormal\(",
        ),
    ],
)
def test_models_without_a_description_length_are_refused(act, message):
    with pytest.raises(ValueError, match=f"Received: .*{message}"):
        act()
