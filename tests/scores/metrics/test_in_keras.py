"""The scores as metrics of Keras models, in compiled steps."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tests.ensembles import ALMOST_A_POINT
from tfbbb import metrics
from tfbbb.scores.metrics.step_prediction import StepPrediction

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(41, 3)).astype("float32")
Y = (10.0 + X[:, :2] + GENERATOR.normal(size=(41, 2))).astype("float32")
LABELS = GENERATOR.integers(3, size=41)
WEIGHTS = GENERATOR.uniform(size=41).astype("float32")


def network(likelihood, units, members=1):
    """Returns a model whose draws hardly differ, but for its members."""
    inputs = keras.Input((3,))
    outputs = tfbbb.layers.DenseVariational(
        units, posterior=ALMOST_A_POINT, bias_posterior=ALMOST_A_POINT, kl_weight=1e-3
    )(inputs)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood, members=members)


def of_numbers(members=1):
    model = network(tfbbb.likelihoods.Normal(heteroscedastic=True), 4, members)
    model.likelihood.adapt(Y)
    return model


def of_classes(members=1):
    return network("categorical", 3, members)


def step_of(model, x=X):
    """Returns the prediction that a step of the model scores."""
    outputs = model.with_learned_parameters(tf.convert_to_tensor(model(x)))
    by_member = tf.reshape(outputs, [-1, len(x), outputs.shape[-1]])
    return StepPrediction(model.likelihood, tf.transpose(by_member, [1, 0, 2]))


class Arrays:
    """A step's prediction as `tfbbb.Predictive` would have it, as arrays."""

    def __init__(self, step):
        self._step = step

    def __getattr__(self, name):
        value = getattr(self._step, name)
        as_it_is = callable(value) or name in ("discrete", "mask")
        return value if as_it_is else np.asarray(value)


def evaluated(model, chosen, y, weights=None, **options):
    """Returns metrics by Keras, in batches that do not divide the rows."""
    name = "metrics" if weights is None else "weighted_metrics"
    model.compile(**{name: chosen}, **options)
    return model.evaluate(
        X, y, batch_size=16, sample_weight=weights, verbose=0, return_dict=True
    )


NUMBERS = {
    "mixture_nll": (metrics.NegativeLogLikelihood, metrics.negative_log_likelihood),
    "rmse": (metrics.RootMeanSquaredError, metrics.root_mean_squared_error),
    "crps": (metrics.CRPS, metrics.crps),
    "coverage": (metrics.IntervalCoverage, metrics.interval_coverage),
    "width": (metrics.IntervalWidth, lambda p, y: metrics.interval_width(p)),
    "calibration": (metrics.CalibrationError, metrics.calibration_error),
}
CLASSES = {
    "mixture_nll": (metrics.NegativeLogLikelihood, metrics.negative_log_likelihood),
    "brier": (metrics.BrierScore, metrics.brier_score),
    "ece": (metrics.ExpectedCalibrationError, metrics.expected_calibration_error),
}


@pytest.mark.parametrize(("kind", "members"), [("numbers", 3), ("classes", 1)])
def test_a_step_scores_the_mixture_of_its_draws(kind, members):
    if kind == "numbers":
        model, y, pairs = of_numbers(members), Y, NUMBERS
    else:
        model, y, pairs = of_classes(members), LABELS, CLASSES
    prediction = Arrays(step_of(model))
    found = evaluated(
        model, [metric(name=name) for name, (metric, _) in pairs.items()], y
    )
    for name, (_, function) in pairs.items():
        # Draws differ by 1e-6.
        assert found[name] == pytest.approx(function(prediction, y), rel=1e-4)


def test_sample_weights_weight_the_scores():
    model = of_numbers(2)
    prediction = Arrays(step_of(model))
    names = ("mixture_nll", "rmse", "crps", "coverage")
    found = evaluated(
        model, [NUMBERS[name][0](name=name) for name in names], Y, WEIGHTS
    )
    for name in names:
        rows = NUMBERS[name][1](prediction, Y, per_row=True).reshape(41, -1)
        power = 2 if name == "rmse" else 1
        weighted = np.average((rows**power).mean(axis=1), weights=WEIGHTS)
        assert found[name] == pytest.approx(weighted ** (1 / power), rel=1e-4)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_metrics_accept_predictions(kind):
    model = of_numbers() if kind == "numbers" else of_classes()
    y, pairs = (Y, NUMBERS) if kind == "numbers" else (LABELS, CLASSES)
    prediction = model.predictive(X, num_samples=5)
    for metric, function in pairs.values():
        metric = metric()
        metric.update_state(y, prediction)
        expected = function(prediction, y)
        assert float(metric.result()) == pytest.approx(expected, rel=1e-5)
        metric.reset_state()
        assert float(metric.result()) == 0.0


def test_plain_keras_models_are_refused_by_distribution_scores():
    for metric in (
        metrics.NegativeLogLikelihood(),
        metrics.CRPS(),
        metrics.IntervalCoverage(),
        metrics.IntervalWidth(),
        metrics.CalibrationError(),
    ):
        with pytest.raises(ValueError, match=r"Compile a `tfbbb\.BayesianModel`"):
            metric.update_state(Y, tf.zeros_like(Y))


@pytest.mark.parametrize(
    "metric", [metrics.CRPS, metrics.IntervalWidth, metrics.CalibrationError]
)
def test_unordered_classes_are_refused_in_a_step(metric):
    with pytest.raises(ValueError, match="without an order"):
        evaluated(of_classes(), [metric()], LABELS)


def test_scores_of_classes_are_refused_in_a_step_of_numbers():
    with pytest.raises(ValueError, match="scores predictions of classes"):
        evaluated(of_numbers(), [metrics.BrierScore()], Y)


@pytest.mark.parametrize(
    "metric",
    [
        metrics.BrierScore(),
        metrics.CalibrationError(levels=[0.1, 0.5]),
        metrics.CRPS(name="score"),
        metrics.ExpectedCalibrationError(bins=7),
        metrics.IntervalCoverage(0.5),
        metrics.IntervalWidth(0.5),
        metrics.NegativeLogLikelihood(),
        metrics.PredictiveMetric("interval_width", level=0.5),
        metrics.RootMeanSquaredError(),
    ],
    ids=lambda metric: type(metric).__name__,
)
def test_metrics_are_restored_from_json(metric):
    config = json.loads(json.dumps(keras.metrics.serialize(metric)))
    again = keras.metrics.deserialize(config)
    assert type(again) is type(metric)
    assert again.get_config() == metric.get_config()
