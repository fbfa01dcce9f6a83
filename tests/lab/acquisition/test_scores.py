"""Scores of rows against closed forms and brute force over the draws."""

import keras
import numpy as np
import pytest

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
    return model.predictive(ROWS, method="moments"), np.asarray(layer.kernel.variance)


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


def test_epistemic_variance_is_that_of_the_function_values(numbers, classes):
    prediction, variance = numbers
    expected = ROWS**2 @ variance[:, 0]
    found = acquisition.epistemic_variance(prediction)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    drawn = drawn_probabilities(classes)
    found = acquisition.epistemic_variance(classes)
    # A sample variance divides by one less than the number of draws, or of pairs.
    np.testing.assert_allclose(found, drawn.var(axis=1).sum(axis=-1), rtol=0.02)


def test_entropy_is_that_of_the_mixture(numbers, classes):
    prediction, variance = numbers
    total = ROWS**2 @ variance[:, 0] + NOISE**2
    expected = 0.5 * np.log(2.0 * np.pi * np.e * total)
    np.testing.assert_allclose(acquisition.entropy(prediction), expected, rtol=1e-4)
    expected = entropy_of(drawn_probabilities(classes).mean(axis=1))
    np.testing.assert_allclose(acquisition.entropy(classes), expected, rtol=1e-4)


def test_random_scores_follow_the_seed(numbers):
    prediction, _ = numbers
    first, again, other = (acquisition.random(prediction, seed) for seed in (3, 3, -4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def information(covariance, noise):
    joint = covariance + np.diag(noise)
    return 0.5 * (np.linalg.slogdet(joint)[1] - np.log(noise).sum())


def test_batch_is_the_greedy_one_of_the_joint_information(numbers):
    likelihood = tfbbb.likelihoods.Normal(scale=NOISE, standardize=False)
    model, _ = linear_model(likelihood)
    rows = np.random.default_rng(1).normal(size=(12, 2)).astype("float32")
    prediction = model.predictive(rows)
    functions = prediction.joint_sample(64, seed=5)[..., 0].astype(np.float64)
    covariance = np.cov(functions, rowvar=False)
    noise = np.full(12, NOISE**2)
    expected: list[int] = []
    for _ in range(5):
        candidates = [row for row in range(12) if row not in expected]
        gains = [
            information(covariance[np.ix_(batch, batch)], noise[batch])
            for batch in ([*expected, row] for row in candidates)
        ]
        expected.append(candidates[int(np.argmax(gains))])
    found = acquisition.select_batch(prediction, 5, num_samples=64, seed=5)
    assert found.tolist() == expected


def test_batch_takes_no_second_copy_of_a_row():
    likelihood = tfbbb.likelihoods.Normal(scale=0.01, standardize=False)
    model, _ = linear_model(likelihood)
    rows = np.array([[5.0, 0.0]] * 4 + [[0.0, 1.0]], np.float32)
    prediction = model.predictive(rows)
    batch = acquisition.select_batch(prediction, 2)
    assert 4 in batch
    assert 4 not in acquisition.select(acquisition.bald(prediction), 2)


def test_a_batch_of_classes_begins_with_the_most_informative_row():
    model, layer = linear_model("bernoulli")
    layer.kernel.variables["mean"].assign([[3.0], [0.0]])
    layer.kernel.variables["log_scale"].assign([[0.0], [0.0]])
    # Almost all draws are certain of the first row; a few are certain of the contrary.
    rows = np.array([[40.0, 0.0], [0.5, 0.0], [0.01, 0.0]], np.float32)
    prediction = model.predictive(rows, num_samples=2000, method="weight")
    assert prediction.epistemic[0].sum() > prediction.aleatoric[0].sum()
    assert np.argmax(acquisition.bald(prediction)) == 1
    assert acquisition.select_batch(prediction, 3, num_samples=2000).tolist()[0] == 1


def test_select_takes_the_largest_scores_with_ties_at_random():
    scores = [0.0, 2.0, 1.0, 1.0, 1.0, 3.0]
    taken = [acquisition.select(scores, 3, seed) for seed in range(300)]
    assert all(rows[:2].tolist() == [5, 1] for rows in taken)
    counts = np.bincount([rows[2] for rows in taken], minlength=6)[2:5]
    # Each of three equal scores has 100 of 300 chances: 4.5 standard errors.
    assert (abs(counts - 100) < 4.5 * np.sqrt(300 * 1 / 3 * 2 / 3)).all()


@pytest.mark.parametrize(
    ("scores", "n"), [([1.0, 2.0], 3), ([1.0, float("nan")], 1), ([[1.0]], 1)]
)
def test_select_refuses_scores_that_do_not_fit(scores, n):
    with pytest.raises(ValueError, match="Received: "):
        acquisition.select(scores, n)


def test_a_batch_larger_than_the_rows_is_refused(classes):
    with pytest.raises(ValueError, match="fewer rows"):
        acquisition.select_batch(classes, 5)
    assert len(acquisition.select_batch(classes, 4)) == 4
