"""`Predictive` answers from the draws it was made of, whatever comes after."""

import keras
import numpy as np
import pytest

import tfbbb
from tests.prediction.recalibration.known_models import network
from tfbbb.bayes.likelihoods import Normal
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.layers import DenseVariational
from tfbbb.prediction import passes

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(8, 3)).astype("float32")
Y = np.array([500.0, -2.0]) + np.array([30.0, 0.1]) * GENERATOR.normal(size=(8, 2))
WIDE = {"posterior": MeanFieldNormal(initial_scale=1.0)}


def regression():
    model = network(2, spread=1.0)
    model.compile(keras.optimizers.Adam(0.1))
    model.likelihood.adapt(Y)
    return model


@pytest.fixture(scope="module")
def prediction():
    return regression().predictive(X, num_samples=200, method="weight")


@pytest.fixture(scope="module")
def classes():
    model = network(3, "categorical", spread=1.0)
    return model.predictive(X, num_samples=200, method="local")


def test_rows_are_drawn_independently(prediction):
    drawn = prediction.sample(3000)
    assert drawn.shape == (3000, 8, 2)
    correlations = np.corrcoef(drawn[..., 0].T)
    assert np.all(np.abs(correlations - np.eye(8)) < 4.5 / np.sqrt(3000))


def test_targets_of_one_sample_share_one_draw_of_weights():
    # Both targets are one and the same function of x, and the noise is small.
    inputs = keras.Input((3,))
    output = DenseVariational(1, **WIDE)(inputs)
    model = keras.Model(inputs, keras.layers.Concatenate()([output, output]))
    drawn = tfbbb.predictive(
        model, X, likelihood=Normal(scale=1e-3), num_samples=50
    ).sample(20)
    assert np.all(np.abs(drawn[..., 0] - drawn[..., 1]) < 6.0 * np.sqrt(2.0) * 1e-3)


@pytest.mark.few(1)
@pytest.mark.parametrize("kept", [False, True], ids=["computed again", "kept"])
@pytest.mark.usefixtures("compiled_functions")
def test_later_answers_use_the_weights_of_the_prediction(monkeypatch, kept):
    model = regression()
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


def test_questions_that_have_no_answer_are_refused(prediction, classes):
    for name in ("probabilities", "entropy", "mutual_information"):
        with pytest.raises(AttributeError, match=f"`{name}` is defined for classes"):
            getattr(prediction, name)
    for question in (prediction.log_prob, prediction.log_prob_of_draws):
        with pytest.raises(ValueError, match=r"8 in all\. Received: 3 targets"):
            question(Y[:3])
    with pytest.raises(ValueError, match=r"shape .*\[rows, 2\]"):
        prediction.log_prob(Y[:, 0])
    with pytest.raises(ValueError, match="class indices 0 to 2"):
        classes.log_prob(np.full(8, 3))
