import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from tfbbb.bayes.likelihoods import OrderedLogistic

GENERATOR = np.random.default_rng(0)


def built(num_classes=5, labels=None, members=1):
    likelihood = OrderedLogistic(num_classes, members=members)
    likelihood.build((None, 1))
    if labels is not None:
        likelihood.adapt(labels)
    return likelihood


def moved(likelihood):
    """Returns the likelihood with other cutpoints than at the start."""
    (raw,) = likelihood.trainable_variables
    raw.assign(GENERATOR.normal(size=raw.shape))
    return likelihood


def outputs_for(likelihood, *leading):
    return GENERATOR.normal(size=(*leading, likelihood.num_outputs()))


@pytest.mark.parametrize("num_classes", [2, 3, 7])
def test_classes_are_where_a_logistic_variable_falls(num_classes):
    likelihood = moved(built(num_classes))
    outputs = outputs_for(likelihood, 6, 4)
    parameters = likelihood.parameters(outputs)
    cutpoints = parameters["cutpoints"].numpy()
    assert cutpoints.shape == (6, 4, num_classes - 1)
    assert np.all(np.diff(cutpoints) > 0.0)
    logistic = stats.logistic(parameters["loc"], parameters["scale"])
    cumulative = np.concatenate([logistic.cdf(cutpoints), np.ones((6, 4, 1))], axis=-1)
    expected = np.diff(cumulative, prepend=0.0)
    found = likelihood.probabilities(outputs)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(likelihood.mean(outputs), found)
    np.testing.assert_allclose(
        likelihood.variance(outputs), expected * (1 - expected), rtol=1e-9
    )
    for label in range(num_classes):
        labels = np.full((6, 4), label)
        np.testing.assert_allclose(
            likelihood.log_prob(labels, outputs), np.log(expected[..., label])
        )
        values = labels[..., np.newaxis]
        np.testing.assert_allclose(
            likelihood.cdf(values + 0.5, outputs)[..., 0], cumulative[..., label]
        )
        np.testing.assert_allclose(
            likelihood.prob(values, outputs)[..., 0], expected[..., label]
        )


def test_values_other_than_classes_have_no_mass():
    likelihood, outputs = built(), [[0.3]]
    assert likelihood.cdf([[-0.1]], outputs).numpy() == 0.0
    assert likelihood.cdf([[4.0]], outputs).numpy() == 1.0
    assert likelihood.cdf([[1e9]], outputs).numpy() == 1.0
    for value in (-1.0, 1.5, 5.0):
        assert likelihood.prob([[value]], outputs).numpy() == 0.0


def test_outputs_of_zero_have_the_frequencies_of_targets():
    labels = np.repeat(np.arange(4), [10, 400, 90, 500])
    likelihood = built(4, labels=labels)
    # Half a row is added to each class, and the steps have a floor of 1e-4.
    np.testing.assert_allclose(
        likelihood.probabilities([[0.0]])[0], [0.01, 0.4, 0.09, 0.5], atol=1e-3
    )
    likelihood.adapt(np.zeros(10))
    np.testing.assert_allclose(likelihood.probabilities([[0.0]])[0, 0], 0.01, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_probabilities_keep_their_digits_far_from_the_cutpoints(dtype):
    likelihood = built(3)
    location = np.array([[-90.0], [-30.0], [30.0], [90.0]])
    cutpoints = likelihood.parameters(location)["cutpoints"].numpy()
    lower, upper = np.split(cutpoints - location, 2, axis=-1)
    expected = np.concatenate(
        [
            special.log_expit(lower),
            special.log_expit(upper)
            + special.log_expit(-lower)
            + np.log(-np.expm1(lower - upper)),
            special.log_expit(-upper),
        ],
        axis=-1,
    )
    found = likelihood.log_probabilities(tf.constant(location, dtype))
    # What is below 1e-38 has no place in single precision.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-38)


@pytest.mark.parametrize("targets", [[0, 5], [0.5, 1.0], [np.nan, 1.0]])
def test_target_that_is_no_class_is_named_with_its_row(targets):
    with pytest.raises(ValueError, match=r"class indices 0 to 4.*Received: .* in row"):
        built().check_targets(targets)


def test_number_of_classes_must_be_given():
    with pytest.raises(ValueError, match=r"OrderedLogistic\(num_classes=5\).*=None"):
        OrderedLogistic().build((None, 1))


def test_network_must_give_a_location():
    likelihood = OrderedLogistic(5)
    with pytest.raises(ValueError, match=r"needs one output.*output_shape=\(None, 3"):
        likelihood.build((None, 3))
    with pytest.raises(ValueError, match=r"made for 5 classes.*num_targets=3"):
        likelihood.num_outputs(3)


def test_quantile_of_a_level_reached_exactly_is_its_class():
    likelihood = OrderedLogistic(num_classes=2)
    likelihood.build((None, 1))
    assert float(likelihood.cdf(0.0, [[0.0]])[0, 0]) == 0.5
    assert likelihood.quantile(0.5, [[0.0]]).numpy().tolist() == [[0.0]]
