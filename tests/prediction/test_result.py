"""`Predictive` answers from the draws it was made of, whatever comes after."""

import keras
import numpy as np
import pytest
from scipy import special, stats

import tfbbb
from tests.posterior_draws import engine_draws
from tfbbb.bayes.likelihoods import Normal
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational
from tfbbb.prediction import passes

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(8, 3)).astype("float32")
Y = np.array([500.0, -2.0]) + np.array([30.0, 0.1]) * GENERATOR.normal(size=(8, 2))
LABELS = GENERATOR.integers(3, size=8)
WIDE = {"posterior": MeanFieldNormal(initial_scale=1.0)}


def network(units, likelihood):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    hidden = DenseVariational(6, "tanh", **WIDE)(inputs)
    model = tfbbb.BayesianModel(
        inputs, DenseVariational(units, **WIDE)(hidden), likelihood=likelihood
    )
    model.compile(keras.optimizers.Adam(0.1))
    return model


@pytest.fixture(scope="module")
def regression():
    model = network(2, Normal())
    model.likelihood.adapt(Y)
    return model


@pytest.fixture(scope="module")
def classifier():
    return network(3, "categorical")


@pytest.fixture(scope="module")
def prediction(regression):
    return regression.predictive(X, num_samples=200, method="weight")


@pytest.fixture(scope="module")
def classes(classifier):
    return classifier.predictive(X, num_samples=200, method="local")


@pytest.fixture(scope="module")
def components(regression):
    """The likelihoods under the 200 draws, [S, rows, k]."""
    draws = engine_draws(regression, X, "weight", 200, mirrored=True)
    draws = draws.astype(np.float64)
    likelihood = regression.likelihood
    variance = likelihood.variance(draws).numpy()
    return stats.norm(likelihood.mean(draws).numpy(), np.sqrt(variance))


def test_moments_are_those_of_the_mixture(prediction, components):
    means, noise = components.args
    np.testing.assert_allclose(prediction.mean, means.mean(axis=0), rtol=1e-5)
    # Pairs are independent of each other: from them comes the error of the mean, which
    # the variance of all draws falls short by.
    error = stats.sem(means.reshape(100, 2, *Y.shape).mean(axis=1))
    np.testing.assert_allclose(prediction.mean_standard_error, error, rtol=1e-4)
    epistemic, aleatoric = means.var(axis=0) + error**2, (noise**2).mean(axis=0)
    np.testing.assert_allclose(prediction.epistemic, epistemic, rtol=1e-4)
    np.testing.assert_allclose(prediction.aleatoric, aleatoric, rtol=1e-4)


def test_quantiles_invert_the_distribution_function(prediction, components):
    levels = [0.01, 0.25, 0.5, 0.9]
    found = prediction.quantile(levels)
    assert found.shape == (8, 4, 2)
    for index, level in enumerate(levels):
        below = components.cdf(found[:, index]).mean(axis=0)
        np.testing.assert_allclose(below, level, atol=1e-5)
        np.testing.assert_array_equal(prediction.quantile(level), found[:, index])


def test_interval_is_central(prediction):
    lower, upper = prediction.interval(0.8)
    expected = prediction.quantile([0.1, 0.9])
    np.testing.assert_allclose(lower, expected[:, 0], rtol=1e-9)
    np.testing.assert_allclose(upper, expected[:, 1], rtol=1e-9)
    lowers, uppers = prediction.interval([0.5, 0.8])
    assert lowers.shape == uppers.shape == (8, 2, 2)
    np.testing.assert_allclose(lowers[:, 1], lower, rtol=1e-9)
    np.testing.assert_allclose(uppers[:, 1], upper, rtol=1e-9)


def test_log_prob_of_draws_is_the_log_density_under_each(prediction, components):
    found = prediction.log_prob_of_draws(Y)
    assert found.shape == (8, 200)
    expected = components.logpdf(Y).sum(axis=-1).T
    # In whatever order.
    found, expected = np.sort(found), np.sort(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_samples_follow_the_mixture_and_rows_are_drawn_independently(
    prediction, components
):
    drawn = prediction.sample(3000)
    assert drawn.shape == (3000, 8, 2)
    ranks = np.mean(
        [
            stats.norm(location, scale).cdf(drawn)
            for location, scale in zip(*components.args, strict=True)
        ],
        axis=0,
    )
    for row, target in np.ndindex(8, 2):
        assert stats.kstest(ranks[:, row, target], "uniform").pvalue > 1e-3
    correlations = np.corrcoef(ranks[:, :, 0].T)
    assert np.all(np.abs(correlations - np.eye(8)) < 4.0 / np.sqrt(3000))


def test_targets_of_one_sample_share_one_draw_of_weights():
    # Both targets are one and the same function of x, and the noise is small.
    inputs = keras.Input((3,))
    output = DenseVariational(1, **WIDE)(inputs)
    model = keras.Model(inputs, keras.layers.Concatenate()([output, output]))
    drawn = tfbbb.predictive(
        model, X, likelihood=Normal(scale=1e-3), num_samples=50
    ).sample(20)
    assert np.all(np.abs(drawn[..., 0] - drawn[..., 1]) < 6.0 * np.sqrt(2.0) * 1e-3)


def test_samples_depend_on_their_seed(prediction):
    np.testing.assert_array_equal(prediction.sample(4), prediction.sample(4, seed=0))
    for seed in (1, -1, 2**31 - 1):
        assert not np.any(prediction.sample(4) == prediction.sample(4, seed=seed))


def test_classes_have_probabilities_entropy_and_information(classes, classifier):
    logits = engine_draws(classifier, X, "local", 200, mirrored=True)
    logits = logits.astype(np.float64)
    probabilities = special.softmax(logits, axis=-1)
    average = probabilities.mean(axis=0)
    entropy = stats.entropy(average, axis=-1)
    information = entropy - stats.entropy(probabilities, axis=-1).mean(axis=0)
    np.testing.assert_allclose(classes.probabilities, average, rtol=1e-5)
    np.testing.assert_allclose(classes.entropy, entropy, rtol=1e-5)
    np.testing.assert_allclose(classes.mutual_information, information, rtol=1e-4)
    np.testing.assert_array_equal(classes.mean, classes.probabilities)
    # The one-hot code of a class has the variance p (1 - p).
    total = classes.epistemic + classes.aleatoric
    biased = total - classes.mean_standard_error**2
    np.testing.assert_allclose(biased, average * (1.0 - average), rtol=1e-5)
    np.testing.assert_allclose(
        classes.log_prob(LABELS), np.log(average[np.arange(8), LABELS]), rtol=1e-5
    )
    np.testing.assert_array_equal(
        classes.log_prob(np.eye(3)[LABELS]), classes.log_prob(LABELS)
    )


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "computed again"])
def test_later_answers_use_the_weights_of_the_prediction(monkeypatch, kept):
    model = network(2, Normal())
    model.likelihood.adapt(Y)
    memory = {} if kept else {"max_memory_mb": 1e-3}
    # Three rows at a time.
    monkeypatch.setattr(passes, "_OUTPUTS_AT_A_TIME", 3 * 2 * 20)
    prediction = model.predictive(X, num_samples=20, **memory)

    def answers():
        return [
            prediction.mean,
            prediction.variance,
            prediction.quantile([0.1, 0.7]),
            prediction.log_prob(Y),
            prediction.sample(3),
            prediction.joint_sample(3),
        ]

    before = answers()
    model.fit(X, Y + 100.0, epochs=3, verbose=0)
    for old, new in zip(before, answers(), strict=True):
        np.testing.assert_array_equal(new, old)
    assert not np.any(model.predictive(X, num_samples=20).mean == prediction.mean)


def test_result_says_what_it_is(prediction, classes):
    assert repr(prediction) == "Predictive(rows=8, targets=2, num_samples=200)"
    assert repr(classes) == "Predictive(rows=8, classes=3, num_samples=200)"
    assert len(prediction) == 8


def test_questions_that_have_no_answer_are_refused(prediction, classes):
    with pytest.raises(ValueError, match="Classes have no order"):
        classes.quantile(0.5)
    with pytest.raises(ValueError, match="Classes have no order"):
        classes.interval()
    for name in ("probabilities", "entropy", "mutual_information"):
        with pytest.raises(AttributeError, match=f"`{name}` is defined for classes"):
            getattr(prediction, name)
    for level in (0.0, 1.0, 95):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            prediction.interval(level)
    with pytest.raises(ValueError, match=r"at least 1 .*Received: n=0"):
        prediction.sample(0)
    with pytest.raises(ValueError, match=r"8 in all\. Received: 3 targets"):
        prediction.log_prob(Y[:3])
    with pytest.raises(ValueError, match=r"8 in all\. Received: 3 targets"):
        prediction.log_prob_of_draws(Y[:3])
    with pytest.raises(ValueError, match=r"shape .*\[rows, 2\]"):
        prediction.log_prob(Y[:, 0])
    with pytest.raises(ValueError, match="class indices 0 to 2"):
        classes.log_prob(np.full(8, 3))


@pytest.mark.parametrize("likelihood", ["poisson", "ordered"])
def test_integers_have_a_distribution_function_and_quantiles(likelihood):
    if likelihood == "ordered":
        likelihood = tfbbb.likelihoods.OrderedLogistic(4)
    model = network(1, likelihood)
    model.likelihood.adapt(np.array([0, 1, 2, 3, 1, 2]))
    prediction = model.predictive(X, num_samples=50)
    assert prediction.discrete
    median = prediction.quantile(0.5)
    assert median.shape == (8, 1)
    assert np.all(prediction.cdf(median) >= 0.5)
    assert np.all(prediction.cdf(median - 1.0) < 0.5)
    np.testing.assert_allclose(prediction.cdf(median + 0.5), prediction.cdf(median))
    np.testing.assert_allclose(
        prediction.cdf(median[:, 0] + 0.5), prediction.cdf(median)
    )
    labels = np.ones(8, int)
    np.testing.assert_allclose(
        prediction.cdf(labels), prediction.cdf(labels[:, np.newaxis] + 0.25)
    )
    np.testing.assert_allclose(
        np.exp(prediction.log_prob(labels)),
        (prediction.cdf(labels) - prediction.cdf(labels - 1))[:, 0],
        rtol=1e-6,
    )
