"""Rows and actions chosen, against closed forms and brute force over the draws."""

import keras
import numpy as np
import pytest
from scipy import integrate, stats

import tfbbb
from tfbbb.lab import acquisition

NOISE = 0.5
ROWS = np.array([[1.0, 0.0], [1.0, 2.0], [3.0, -1.0], [0.2, 0.2]], np.float32)


def linear_model(likelihood, outputs=1):
    """Returns a linear model whose weights have known posterior moments."""
    inputs = keras.Input((2,))
    layer = tfbbb.layers.DenseVariational(outputs, use_bias=False)
    model = tfbbb.BayesianModel(inputs, layer(inputs), likelihood=likelihood)
    random = np.random.default_rng(0)
    shape = layer.kernel.shape
    layer.kernel.variables["mean"].assign(random.normal(size=shape))
    layer.kernel.variables["log_scale"].assign(random.normal(-0.5, 0.3, size=shape))
    return model, layer


@pytest.fixture(scope="module")
def numbers():
    likelihood = tfbbb.likelihoods.Normal(scale=NOISE, standardize=False)
    model, layer = linear_model(likelihood)
    return model.predictive(ROWS), np.asarray(layer.kernel.variance)


@pytest.fixture(scope="module")
def classes():
    model, _ = linear_model("categorical", outputs=3)
    return model.predictive(ROWS, num_samples=200, method="weight")


def drawn_probabilities(prediction):
    """Returns p(y | x, w) under every draw, [rows, draws, classes]."""
    answers = [
        prediction.log_prob_of_draws(np.full(len(prediction), label))
        for label in range(3)
    ]
    return np.exp(np.stack(answers, axis=-1))


def entropy_of(probabilities):
    return -(probabilities * np.log(probabilities)).sum(axis=-1)


def test_bald_of_a_linear_model_is_its_information(numbers):
    prediction, variance = numbers
    # I(y; w) = log(1 + x^T S x / noise^2) / 2 for y = x^T w + noise, w ~ N(m, S).
    information = 0.5 * np.log1p(ROWS**2 @ variance[:, 0] / NOISE**2)
    np.testing.assert_allclose(acquisition.bald(prediction), information, rtol=1e-4)


def test_bald_of_classes_is_the_disagreement_of_the_draws(classes):
    drawn = drawn_probabilities(classes)
    expected = entropy_of(drawn.mean(axis=1)) - entropy_of(drawn).mean(axis=1)
    np.testing.assert_allclose(acquisition.bald(classes), expected, rtol=1e-3)


MEANS = np.array([0.0, 0.5, 1.0])
SCALES = np.array([1.0, 0.2, 0.6])
CHOICES = 300


def rewards(mean, scale):
    """Returns a model of rewards that are linear in the inputs, without a bias."""
    inputs = keras.Input((len(mean),))
    layer = tfbbb.layers.DenseVariational(1, use_bias=False)
    model = tfbbb.BayesianModel(inputs, layer(inputs))
    layer.kernel.variables["mean"].assign(np.reshape(mean, (-1, 1)))
    layer.kernel.variables["log_scale"].assign(np.log(np.reshape(scale, (-1, 1))))
    return model


def shares(model, actions, **options):
    """Returns how often each action has the largest value."""
    chosen = [
        np.argmax(acquisition.thompson_draw(model, actions, seed=seed, **options))
        for seed in range(CHOICES)
    ]
    return np.bincount(chosen, minlength=len(actions)) / CHOICES


def assert_near(found, probabilities):
    error = np.sqrt(probabilities * (1.0 - probabilities) / CHOICES)
    assert (np.abs(found - probabilities) <= 4.5 * error).all(), found


def probability_of_best(arm, draws):
    """Returns the probability that an arm of independent normals is the largest."""
    arms = [stats.norm(m, s / draws**0.5) for m, s in zip(MEANS, SCALES, strict=True)]
    others = [other for number, other in enumerate(arms) if number != arm]

    def density(value):
        return arms[arm].pdf(value) * np.prod([other.cdf(value) for other in others])

    return integrate.quad(density, -8.0, 8.0, points=[0.0, 1.0])[0]


@pytest.mark.parametrize("draws", [1, 3])
def test_an_arm_is_chosen_as_often_as_it_is_best(draws):
    expected = np.array([probability_of_best(arm, draws) for arm in range(3)])
    found = shares(rewards(MEANS, SCALES), np.eye(3, dtype="float32"), draws=draws)
    assert_near(found, expected)


def test_all_actions_of_a_choice_see_one_function():
    # Of three points on a line through the origin, the middle one is never the best.
    found = shares(rewards([0.0], [1.0]), [[1.0], [2.0], [3.0]])
    assert found[1] == 0.0
    assert_near(found[[0, 2]], np.array([0.5, 0.5]))


def test_a_reward_is_one_finite_number():
    model, _ = linear_model("categorical", outputs=3)
    with pytest.raises(ValueError, match="one number"):
        acquisition.thompson_draw(model, ROWS)
    with pytest.raises(ValueError, match="finite"):
        acquisition.thompson_draw(rewards([np.nan], [1.0]), [[1.0]])
