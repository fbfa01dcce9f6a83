import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats
from scipy.special import comb

import tfbbb
from tests.repeated_calls import repeated
from tfbbb import priors
from tfbbb.bayes.likelihoods import Categorical, Normal
from tfbbb.lab.compression import description_length, description_length_curve
from tfbbb.layers import DenseVariational
from tfbbb.model.compression import prune

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(30, 3)).astype("float32")
Y = (X @ [[1.0], [-2.0], [0.0]] + 0.3).astype("float32")
NOISE = Normal(scale=0.7)


def linear(prior="normal"):
    """Returns f(x) = x w + b with a known posterior."""
    model = keras.Sequential([keras.Input((3,)), DenseVariational(1, prior=prior)])
    kernel, bias = model.layers[0].variational_weights
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
    length = description_length(linear(), X, Y, likelihood=NOISE, num_samples=400)
    kernel = exact_divergence_bits([1.0, -2.0, 0.01], [0.1, 0.2, 0.3], 3**-0.5)
    bias = exact_divergence_bits([0.25], [0.05], 1.0)
    np.testing.assert_allclose(length.weight_bits, kernel + bias, rtol=1e-5)
    data = exact_data_bits([1.0, -2.0, 0.01], [0.01, 0.04, 0.09], 0.25, 0.0025)
    assert abs(length.data_bits - data) < 4 * length.data_bits_standard_error
    # The error itself is a few per cent of what there is to know.
    assert length.data_bits_standard_error < 0.05 * data
    assert length.mask_bits == 0.0
    assert (length.num_weights, length.num_removed) == (4, 0)
    assert length.total == length.weight_bits + length.data_bits


def test_a_pruned_model_pays_for_kept_weights_and_mask():
    pruned = prune(linear(), 0.25)
    length = description_length(pruned, X, Y, likelihood=NOISE, num_samples=400)
    kernel = exact_divergence_bits([1.0, -2.0], [0.1, 0.2], 3**-0.5)
    bias = exact_divergence_bits([0.25], [0.05], 1.0)
    np.testing.assert_allclose(length.weight_bits, kernel + bias, rtol=1e-5)
    np.testing.assert_allclose(length.mask_bits, 2.0, rtol=1e-12)  # one of four
    data = exact_data_bits([1.0, -2.0, 0.0], [0.01, 0.04, 0.0], 0.25, 0.0025)
    assert abs(length.data_bits - data) < 4 * length.data_bits_standard_error
    assert length.share_removed == 0.25


def test_without_weights_only_the_data_cost_bits():
    pruned = prune(linear(), 1.0)
    length = description_length(pruned, X, Y, likelihood=NOISE)
    assert (length.weight_bits, length.mask_bits) == (0.0, 0.0)
    data = -stats.norm.logpdf(Y, 0.0, 0.7).sum() / math.log(2)
    np.testing.assert_allclose(length.data_bits, data, rtol=1e-6)


def test_equals_the_negative_evidence_lower_bound_in_bits():
    inputs = keras.Input((3,))
    model = tfbbb.BayesianModel(
        inputs, DenseVariational(1)(inputs), likelihood="normal"
    )
    model.compile("adam")
    model.fit(X, Y, epochs=2, verbose=0)
    length = description_length(model, X, Y, num_samples=400)
    x, y = (tf.constant(values, tf.float32) for values in (X, Y))

    def loss():
        return model.compute_loss(x, y, model(x, training=False), training=False)

    bits = 30 * repeated(loss, 100) / math.log(2)
    error = math.hypot(bits.std(ddof=1) / 10, length.data_bits_standard_error)
    assert abs(length.total - bits.mean()) < 4 * error


@pytest.mark.parametrize(
    "prior", [priors.ScaleMixtureNormal(0.25, 1.0, 0.1), priors.Normal(2.0)]
)
def test_any_independent_prior_gives_bits_of_kept_weights(prior):
    pruned = prune(linear(prior), 0.25)
    kernel = pruned.layers[0].kernel
    length = description_length(pruned, X, Y, likelihood=NOISE)
    # The integral of q log(q / p), weight by weight.
    total = exact_divergence_bits([0.25], [0.05], 1.0) * math.log(2)
    draws_variance = 0.0
    for mean, stddev in ((1.0, 0.1), (-2.0, 0.2)):
        q = stats.norm(mean, stddev)
        grid = np.linspace(mean - 9 * stddev, mean + 9 * stddev, 4001)
        log_p = prior.log_prob({}, np.float32(grid[:, None]), (1,), kernel.fan_in)
        difference = q.logpdf(grid) - np.asarray(log_p)
        nats = np.trapezoid(q.pdf(grid) * difference, grid)
        draws_variance += np.trapezoid(q.pdf(grid) * (difference - nats) ** 2, grid)
        total += nats
    exact = isinstance(prior, priors.Normal)
    tolerance = 1e-4 if exact else 4 * math.sqrt(draws_variance / 16)
    assert abs(length.weight_bits * math.log(2) - total) < tolerance


def test_the_curve_has_the_lengths_of_pruned_models():
    model = linear()
    shares = [1.0, 0.0, 0.25, 0.5]
    curve = description_length_curve(model, X, Y, shares=shares, likelihood=NOISE)
    np.testing.assert_array_equal(curve.shares, sorted(shares))
    for length in curve.lengths:
        alone = description_length(
            prune(model, length.share_removed), X, Y, likelihood=NOISE
        )
        np.testing.assert_allclose(length.total, alone.total, rtol=1e-6)
        assert length.mask_bits == pytest.approx(
            math.log2(comb(4, length.num_removed)), abs=1e-9
        )
    assert curve.best.total == curve.totals.min()
    # The third weight is 0 in truth: what sending it costs is all waste.
    assert curve.best.share_removed == 0.25


def test_counts_classes_in_bits_per_row_against_a_uniform_code():
    model = keras.Sequential([keras.Input((3,)), DenseVariational(4)])
    labels = np.arange(30) % 4
    length = description_length(prune(model, 1.0), X, labels, likelihood=Categorical())
    np.testing.assert_allclose(length.data_bits, 30 * 2.0, rtol=1e-6)


def test_sums_over_the_places_of_a_row():
    model = keras.Sequential([keras.Input((5, 3)), DenseVariational(1)])
    y = GENERATOR.normal(size=(6, 5, 1))
    x = GENERATOR.normal(size=(6, 5, 3))
    length = description_length(prune(model, 1.0), x, y, likelihood=NOISE)
    exact = -stats.norm.logpdf(y, 0.0, 0.7).sum() / math.log(2)
    np.testing.assert_allclose(length.data_bits, exact, rtol=1e-6)


def test_reads_several_inputs_by_list_and_by_name():
    left, right = keras.Input((3,), name="left"), keras.Input((2,), name="right")
    joined = keras.layers.Concatenate()([left, right])
    model = keras.Model({"left": left, "right": right}, DenseVariational(1)(joined))
    listed = keras.Model([left, right], model.layers[-1](joined))
    arguments = {"likelihood": NOISE, "num_samples": 10}
    by_name = description_length(model, {"left": X, "right": X[:, :2]}, Y, **arguments)
    by_list = description_length(listed, [X, X[:, :2]], Y, **arguments)
    assert by_name.weight_bits == by_list.weight_bits
    assert np.isfinite([by_name.data_bits, by_list.data_bits]).all()


@keras.saving.register_keras_serializable(package="tests.compression")
class Tied(priors.Normal):
    """A prior whose density of many weights is not the product of those of each."""

    def log_prob(self, parameters, weights, shape, fan_in):
        return super().log_prob(parameters, weights, shape, fan_in) * (1 + len(shape))


@keras.saving.register_keras_serializable(package="tests.compression")
class Joint(priors.Normal):
    """A prior of a vector of three, of which every two are correlated."""

    def log_prob(self, parameters, weights, shape, fan_in):
        leading = weights.shape[: len(weights.shape) - len(shape)]
        vectors = tf.reshape(weights, [*leading, 3])
        square = tf.reduce_sum(vectors**2, axis=-1)
        return -0.5 * (square + tf.reduce_sum(vectors, axis=-1) ** 2)


def length(model, y=Y, **options):
    return description_length(model, X, y, **{"likelihood": NOISE, **options})


def dense(**options):
    return keras.Sequential([keras.Input((3,)), DenseVariational(1, **options)])


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: length(linear(), likelihood=None), "likelihood=None"),
        (lambda: length(linear(), num_samples=1), "num_samples=1"),
        (lambda: length(linear(), Y[:9]), "9 targets"),
        (lambda: length(dense(members=2)), "members=2 in"),
        (lambda: length(dense(bias_posterior="point")), r"bias with posterior=Point\("),
        (lambda: length(prune(linear(Tied()), 0.25)), r"prior=Tied\("),
        (lambda: length(prune(linear(Joint()), 0.25)), r"prior=Joint\("),
        (
            lambda: description_length_curve(
                linear(), X, Y, shares=[-0.5], likelihood=NOISE
            ),
            "share=-0.5",
        ),
    ],
)
def test_invalid_arguments_are_refused(act, message):
    with pytest.raises(ValueError, match=f"Received: .*{message}"):
        act()
