"""Averages of models against the weighted sums of the predictions of their models."""

import keras
import numpy as np
import pytest
from scipy import stats

import tfbbb
from tfbbb.model.inference_result import InferenceResult
from tfbbb.model.model_average import stacking_weights

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(60, 2)).astype("float32")
Y = (10.0 + 3.0 * X[:, :1] + 0.5 * GENERATOR.normal(size=(60, 1))).astype("float32")
LABELS = (X[:, 0] > 0).astype("int32")
WEIGHTS = np.array([0.3, 0.7])
NEW = X[:7]


def network(units, likelihood="normal", outputs=1, members=1, y=Y, seed=0):
    generator = np.random.default_rng([seed, *units])
    keras.utils.set_random_seed(seed + sum(units))
    inputs = keras.Input((2,))
    hidden = inputs
    for width in units:
        hidden = tfbbb.layers.DenseVariational(width, activation="tanh")(hidden)
    outputs = tfbbb.layers.DenseVariational(outputs)(hidden)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood, members=members)
    # Training would only take time: nothing here depends on what was learned.
    model.likelihood.adapt(y)
    for variable in model.likelihood.learned_variables:
        variable.assign(generator.normal(-1.0, 0.5, variable.shape))
    for layer in model.variational_layers:
        for weight in layer.variational_weights:
            variable = weight.variables["log_scale"]
            variable.assign(generator.normal(-2.0, 0.5, variable.shape))
    return model


@pytest.fixture(scope="module")
def models():
    return [network([]), network([3])]


@pytest.fixture(scope="module")
def mixture(models):
    return tfbbb.average(models, WEIGHTS)


@pytest.fixture(scope="module")
def exported(mixture, tmp_path_factory):
    path = tmp_path_factory.mktemp("average") / "1"
    mixture.export_predictive(path, target="y")
    return tfbbb.load(path)


def of_models(prediction, function, weights=WEIGHTS):
    """The weighted sum over members of a function of each draw, [rows, ...]."""
    values = prediction.of_outputs(function)
    members = len(weights)
    by_member = values.reshape(len(values), -1, members, *values.shape[2:]).mean(1)
    return np.tensordot(by_member, weights, axes=(1, 0))


def parameters_of_draws(mixture, prediction):
    normal = mixture.likelihood
    location = prediction.of_outputs(lambda o: normal.parameters(o)["loc"])
    scale = prediction.of_outputs(lambda o: normal.parameters(o)["scale"])
    location, scale = (np.asarray(x, np.float64)[..., 0] for x in (location, scale))
    weights = np.tile(WEIGHTS, location.shape[1] // 2) * 2 / location.shape[1]
    return location, scale, weights


def test_answers_are_those_of_the_weighted_mixture_of_draws(mixture):
    prediction = mixture.predictive(NEW, num_samples=60, method="weight")
    location, scale, weights = parameters_of_draws(mixture, prediction)
    y = Y[:7]
    densities = stats.norm.pdf(y, location, scale) @ weights
    np.testing.assert_allclose(prediction.log_prob(y), np.log(densities), rtol=1e-5)
    below = stats.norm.cdf(y, location, scale) @ weights
    np.testing.assert_allclose(prediction.cdf(y)[:, 0], below, rtol=1e-5)
    mean = location @ weights
    np.testing.assert_allclose(prediction.mean[:, 0], mean, rtol=1e-6)
    np.testing.assert_allclose(
        prediction.aleatoric[:, 0], scale**2 @ weights, rtol=1e-5
    )
    quantile = prediction.quantile(0.8)
    reached = stats.norm.cdf(quantile, location, scale) @ weights
    np.testing.assert_allclose(reached, 0.8, atol=1e-6)


def test_moments_are_the_weighted_moments_of_the_models(mixture, models):
    prediction = mixture.predictive(NEW, num_samples=4000, method="local")
    alone = [
        model.predictive(NEW, num_samples=2000, method="local") for model in models
    ]
    means = np.stack([p.mean for p in alone], axis=-1)
    mean = means @ WEIGHTS
    errors = np.stack([p.mean_standard_error for p in alone], axis=-1)
    # Two independent estimates.
    error = np.sqrt(2 * np.square(errors) @ np.square(WEIGHTS)) + 1e-4
    assert (abs(prediction.mean - mean) < 4.5 * error).all()
    between = np.square(means - mean[..., None]) @ WEIGHTS
    np.testing.assert_allclose(
        prediction.between_members, between, rtol=0.05, atol=0.01
    )
    variance = np.stack([p.variance for p in alone], axis=-1) @ WEIGHTS + between
    np.testing.assert_allclose(prediction.variance, variance, rtol=0.1)


def test_standard_error_is_that_of_the_weighted_mean(mixture):
    prediction = mixture.predictive(NEW, 480, method="weight")
    location = prediction.of_outputs(mixture.likelihood.mean)
    # Twenty predictions of 24 draws, one of each model in turn.
    parts = location.reshape(len(NEW), 20, 12, 2) @ WEIGHTS
    error = np.mean(prediction.mean_standard_error**2)
    # The variance of a variance of 20 is 2/19; all rows share the draws.
    ratio = np.var(parts.mean(axis=2), axis=1, ddof=1).mean() / 20 / error
    assert abs(ratio - 1.0) < 4.5 * np.sqrt(2 / 19)


def test_samples_choose_models_by_their_weights(mixture):
    prediction = mixture.predictive(NEW[:1], num_samples=300, method="weight")
    drawn = prediction.sample(20_000, seed=1)[:, 0, 0]
    location, scale, weights = parameters_of_draws(mixture, prediction)
    error = np.sqrt(prediction.variance[0, 0] / 20_000)
    assert abs(drawn.mean() - location[0] @ weights) < 4.5 * error
    uniform = np.sort(
        (stats.norm.cdf(drawn[:, None], location, scale) @ weights).ravel()
    )
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3


def test_joint_samples_choose_models_by_their_weights(mixture, models):
    first = 1.0 * np.concatenate([NEW, 100.0 * NEW])
    far = mixture.predictive(first).joint_sample(600, seed=3)
    assert far.shape == (600, 14, 1)
    # Far away only the linear model, without tanh units, is far from its mean.
    spread = abs(far[:, 7:, 0] - np.median(far[:, 7:, 0], axis=0)).max(axis=1)
    share = np.mean(spread > 100.0)
    assert abs(share - WEIGHTS[0]) < 4.5 * np.sqrt(0.3 * 0.7 / 600)


def test_ensemble_and_single_model_keep_their_weights():
    ensemble, single = network([], members=3), network([], seed=1)
    assert tfbbb.average([ensemble]).likelihood.member_weights is None
    both = tfbbb.average([ensemble, single], [1.0, 2.0])
    np.testing.assert_allclose(both.mixture_weights, [1 / 3, 2 / 3])
    parts = [*ensemble.members, single]
    shares = np.array([1, 1, 1, 6]) / 9
    prediction = both.predictive(NEW, 4, method="local")
    alone = [part.predictive(NEW, 4, method="local") for part in parts]
    # Linear models are integrated exactly.
    densities = np.exp([one.log_prob(Y[:7]) for one in alone])
    expected = np.log(shares @ densities)
    np.testing.assert_allclose(prediction.log_prob(Y[:7]), expected, rtol=1e-4)
    means = np.mean([both.predict(NEW, verbose=0) for _ in range(4)], axis=0)
    error = np.sqrt(prediction.epistemic / 4)
    assert (abs(means - prediction.mean) < 4.5 * error).all()


def test_average_of_classifiers_mixes_probabilities():
    parts = [network([w], "categorical", 2, y=LABELS) for w in (3, 5)]
    both = tfbbb.average(parts, [1.0, 3.0])
    prediction = both.predictive(NEW, 200, method="weight")
    expected = of_models(prediction, both.likelihood.mean, np.array([0.25, 0.75]))
    np.testing.assert_allclose(prediction.probabilities, expected, rtol=1e-5)
    picked = expected[np.arange(7), LABELS[:7]]
    np.testing.assert_allclose(prediction.log_prob(LABELS[:7]), np.log(picked), 1e-5)
    assert (prediction.mutual_information > 0).all()


def test_saved_average_predicts_the_same(mixture, tmp_path):
    mixture.save(tmp_path / "average.keras")
    loaded = keras.models.load_model(tmp_path / "average.keras")
    np.testing.assert_allclose(loaded.mixture_weights, WEIGHTS, rtol=1e-12)
    one, other = mixture.predictive(NEW), loaded.predictive(NEW)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-6)
    np.testing.assert_allclose(one.quantile(0.9), other.quantile(0.9), rtol=1e-6)


def test_exported_average_gives_the_same_answers(mixture, exported):
    one, other = (m.predictive(NEW, 60, method="weight") for m in (mixture, exported))
    for question in ("mean", "variance", "epistemic", "between_members"):
        np.testing.assert_allclose(
            getattr(one, question), getattr(other, question), rtol=1e-4, atol=1e-6
        )
    np.testing.assert_allclose(one.log_prob(Y[:7]), other.log_prob(Y[:7]), rtol=1e-5)
    np.testing.assert_allclose(one.sample(5), other.sample(5), rtol=1e-4)
    np.testing.assert_allclose(one.interval()[0], other.interval()[0], rtol=1e-5)
    np.testing.assert_allclose(one.joint_sample(9), other.joint_sample(9), rtol=1e-4)


def test_evidence_weights_are_the_softmax_of_log_evidences(models):
    # The third model's weight is lost in rounding.
    models = [*models, models[0].members[0]]
    logs = [-100.0, -101.5, -200.0]
    for model, log_evidence in zip(models, logs, strict=True):
        model.inference = InferenceResult("Exact()", log_evidence)
    try:
        found = tfbbb.average(models, "evidence")
    finally:
        for model in models:
            model.inference = None
    odds = np.exp([0.0, -1.5])
    np.testing.assert_allclose(found.mixture_weights, odds / odds.sum(), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": "evidence"}, "log_evidence=None of"),
        ({"weights": "best"}, 'must be "uniform", "evidence"'),
        ({"weights": "stacking"}, "needs both"),
        ({"x": X, "y": Y}, "belong to"),
        ({"weights": [1.0, 2.0, 3.0]}, "must be 2 finite numbers"),
        ({"weights": [1.0, -2.0]}, "none of them negative"),
    ],
)
def test_weights_that_cannot_be_found_are_refused(models, arguments, message):
    with pytest.raises(ValueError, match=message):
        tfbbb.average(models, **arguments)


def test_models_that_do_not_fit_each_other_are_refused(models, mixture):
    with pytest.raises(ValueError, match="at least one model"):
        tfbbb.average([])
    with pytest.raises(ValueError, match="is not trained"):
        mixture.fit(X, Y)
    other = network([2], "student_t")
    with pytest.raises(ValueError, match="the same likelihood"):
        tfbbb.average([models[0], other])
    shifted = network([2], y=Y + 1.0)
    with pytest.raises(ValueError, match="the same shift and scale"):
        tfbbb.average([models[0], shifted])


@pytest.mark.parametrize("count", [2, 8])
def test_no_model_is_under_its_optimal_weight(count):
    logs = GENERATOR.normal(size=(200, count)) * np.linspace(0.2, 1.5, count)
    weights = stacking_weights(logs)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    mixture = np.exp(logs) @ weights
    ratios = (np.exp(logs) / mixture[:, None]).mean(axis=0)
    # Optimality (Karush, Kuhn and Tucker).
    assert ratios.max() < 1.0 + 1e-6
    np.testing.assert_allclose(ratios[weights > 0], 1.0, atol=1e-4)


def test_a_model_that_is_worse_everywhere_has_no_weight():
    logs = GENERATOR.normal(size=(50, 2))
    worse = logs.max(axis=1, keepdims=True) - 2.0
    logs = np.concatenate([logs, worse - 1000.0, worse], axis=1)
    weights = stacking_weights(logs)
    assert weights[2] == weights[3] == 0.0


def test_a_model_may_find_rows_impossible():
    logs = np.array([[0.0, -np.inf], [-np.inf, 0.0], [0.0, -np.inf]])
    np.testing.assert_allclose(stacking_weights(logs), [2 / 3, 1 / 3], atol=1e-6)


@pytest.mark.parametrize(
    ("logs", "message"),
    [
        ([0.0, 1.0], r"of shape \(2,\)"),
        ([[0.0, 0.0], [-np.inf, -np.inf]], "in row 1"),
        ([[0.0, np.nan]], "in row 0"),
    ],
)
def test_densities_without_an_optimum_are_refused(logs, message):
    with pytest.raises(ValueError, match=message):
        stacking_weights(logs)
