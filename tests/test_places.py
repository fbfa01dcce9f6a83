"""Masked steps, weights of steps and pixels, and void classes count as they should."""

import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.bayes.likelihoods import Normal
from tfbbb.prediction.output_mask import OutputMask

POINT = {"posterior": "point", "bias_posterior": "point"}
TOKENS = np.array([[3, 4, 0, 0], [1, 2, 5, 0], [2, 0, 0, 0]])
COUNTED = TOKENS > 0


def embedding_model(likelihood, num_outputs, members=None):
    inputs = keras.Input((4,), dtype="int32")
    hidden = keras.layers.Embedding(6, 4, mask_zero=True)(inputs)
    outputs = tfbbb.layers.DenseVariational(num_outputs, **POINT)(hidden)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood, members=members)
    model.compile(tfbbb.optimizers.Adam(0.0), run_eagerly=True)
    return model


def log_probabilities(model):
    return keras.ops.log_softmax(model(TOKENS)).numpy()


def test_masked_labels_may_have_any_values():
    model = embedding_model("categorical", 3)
    labels = np.where(COUNTED, TOKENS % 3, -100)
    history = model.fit(TOKENS, labels, verbose=0).history
    chosen = np.take_along_axis(
        log_probabilities(model), np.maximum(labels, 0)[..., np.newaxis], axis=-1
    )
    expected = -chosen[COUNTED].sum() / len(TOKENS)
    assert history["nll"][0] == pytest.approx(expected, rel=1e-5)
    figures = model.evaluate(TOKENS, labels, verbose=0, return_dict=True)
    assert figures["nll"] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="class indices 0 to 2"):
        model.fit(np.ones((3, 4), int), labels, verbose=0)


def test_the_mask_of_a_model_within_a_model_counts():
    inputs = keras.Input((4,), dtype="int32")
    inner = keras.Sequential([keras.layers.Embedding(6, 4, mask_zero=True)])
    outputs = tfbbb.layers.DenseVariational(3, **POINT)(inner(inputs))
    model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    np.testing.assert_array_equal(OutputMask(model)(TOKENS), COUNTED)


def test_mask_and_weights_reach_the_log_posterior():
    from tfbbb.inference.network_function import NetworkFunction

    labels = np.where(COUNTED, TOKENS % 3, 7)
    model = embedding_model("categorical", 3)
    network = NetworkFunction(model)
    found = network.log_likelihood(network.split(network.means()), TOKENS, labels)
    chosen = np.take_along_axis(
        log_probabilities(model), (TOKENS % 3)[..., np.newaxis], axis=-1
    )[..., 0]
    np.testing.assert_allclose(
        found[0], np.sum(chosen * COUNTED, axis=1), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(ValueError, match="knows no mask"):
        tfbbb.inference.Laplace().fit(model, TOKENS, TOKENS % 3, verbose=0)


GENERATOR = np.random.default_rng(0)


def test_class_weights_of_rows_keep_n_and_the_elbo():
    x = GENERATOR.normal(size=(12, 2)).astype("float32")
    y = (np.arange(12) < 3).astype("uint8")
    inputs = keras.Input((2,))
    layer = tfbbb.layers.DenseVariational(1, **POINT)
    model = tfbbb.BayesianModel(inputs, layer(inputs), likelihood="bernoulli")
    model.compile(tfbbb.optimizers.Adam(0.0), run_eagerly=True)
    # Batches of 5, 5 and 2 rows: each divides by the mean weight of all rows.
    history = model.fit(
        x, y, batch_size=5, class_weight={0: 1 / 9, 1: 1 / 3}, verbose=0
    ).history
    logits = model(x).numpy()[:, 0]
    nll = np.logaddexp(0.0, np.where(y == 1, -logits, logits))
    expected = (nll[y == 1].mean() + nll[y == 0].mean()) / 2
    assert model.num_rows == 12
    assert history["nll"][0] == pytest.approx(expected, rel=1e-5)
    kl = history["kl"][0] / 12
    assert history["loss"][0] == pytest.approx(expected + kl, rel=1e-5)


def test_the_loss_of_plain_keras_leaves_out_masked_steps():
    loss = tfbbb.losses.NegativeLogLikelihood(Normal(scale=1.0, standardize=False))
    model = keras.Sequential(
        [keras.Input((3, 2)), keras.layers.Masking(), keras.layers.Dense(1)]
    )
    x = GENERATOR.normal(size=(2, 3, 2)).astype("float32")
    x[0, 1:] = 0.0
    y = GENERATOR.normal(size=(2, 3, 1)).astype("float32")
    weights = GENERATOR.uniform(size=(2, 3))
    model.compile("sgd", loss=loss)
    mask = np.array([[1, 0, 0], [1, 1, 1]])
    squares = 0.5 * (y - model(x).numpy())[..., 0] ** 2 + 0.5 * np.log(2 * np.pi)
    found = model.evaluate(x, y, verbose=0)
    assert found == pytest.approx(np.sum(mask * squares) / 2, rel=1e-5)
    found = model.evaluate(x, y, sample_weight=weights, verbose=0)
    assert found == pytest.approx(np.sum(weights * mask * squares) / 2, rel=1e-5)


def test_targets_of_rows_of_weight_0_may_have_any_values():
    x = GENERATOR.normal(size=(6, 2)).astype("float32")
    y = np.where(np.arange(6) < 2, np.nan, x[:, 0])[:, np.newaxis].astype("float32")
    weights = np.where(np.arange(6) < 2, 0.0, 1.0)
    inputs = keras.Input((2,))
    outputs = tfbbb.layers.DenseVariational(1, **POINT)(inputs)
    model = tfbbb.BayesianModel(inputs, outputs)
    model.compile(tfbbb.optimizers.Adam(0.01), run_eagerly=True)
    history = model.fit(x, y, sample_weight=weights, verbose=0).history
    assert np.isfinite(history["loss"][0])
    assert np.isfinite(model.get_weights()[0]).all()
    assert model.num_rows == 4
    np.testing.assert_allclose(model.likelihood.target_shift, [x[2:, 0].mean()], 1e-5)
    with pytest.raises(ValueError, match="finite numbers"):
        model.fit(x, y, verbose=0)


@pytest.mark.filterwarnings("ignore:The members of this model share")
def test_scores_of_predictions_leave_out_masked_steps():
    from tfbbb import metrics

    model = embedding_model("categorical", 3, members=2)
    labels = np.where(COUNTED, TOKENS % 3, -100)
    prediction = model.predictive(TOKENS, num_samples=4)
    np.testing.assert_array_equal(prediction.mask, COUNTED)
    chosen = np.take_along_axis(
        prediction.probabilities, np.maximum(labels, 0)[..., np.newaxis], axis=-1
    )[..., 0]
    log_prob = np.where(COUNTED, np.log(chosen), 0.0)
    np.testing.assert_allclose(prediction.log_prob(labels), log_prob, rtol=1e-5)
    found = metrics.negative_log_likelihood(prediction, labels)
    assert found == pytest.approx(-log_prob.sum(axis=1).mean(), rel=1e-5)
    one_hot = np.eye(3)[np.maximum(labels, 0)]
    squares = np.sum((prediction.probabilities - one_hot) ** 2, axis=-1)
    found = metrics.brier_score(prediction, labels)
    assert found == pytest.approx(squares[COUNTED].mean(), rel=1e-5)
    np.testing.assert_array_equal(prediction.take(np.array([2, 0])).mask, COUNTED[::-2])
    for score in (
        lambda: prediction.log_prob_of_draws(labels),
        lambda: metrics.expected_calibration_error(prediction, labels),
        lambda: model.recalibrate(
            *(np.tile(a, (7, 1)) for a in (TOKENS, np.maximum(labels, 0))),
            "temperature",
        ),
    ):
        with pytest.raises(ValueError, match=r"know.? no mask.*Received: \d+ masked"):
            score()
