"""Keras' metrics of a `BayesianModel`: right for every form of targets."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb import likelihoods, metrics

GENERATOR = np.random.default_rng(0)
ROWS, STEPS = 24, 5
KERAS = keras.metrics

ELEMENTWISE = {
    "mse": KERAS.MeanSquaredError,
    "mae": KERAS.MeanAbsoluteError,
    "rmse": KERAS.RootMeanSquaredError,
    "log_cosh": KERAS.LogCoshError,
    "cosine": KERAS.CosineSimilarity,
}
NUMBERS = {
    **ELEMENTWISE,
    "mape": KERAS.MeanAbsolutePercentageError,
    "msle": KERAS.MeanSquaredLogarithmicError,
    "r2": KERAS.R2Score,
    "pearson": lambda: KERAS.PearsonCorrelation(axis=0),
}
BINARY = {
    **ELEMENTWISE,
    "accuracy": KERAS.BinaryAccuracy,
    "crossentropy": KERAS.BinaryCrossentropy,
    "auc": KERAS.AUC,
    "precision": KERAS.Precision,
    "recall": KERAS.Recall,
    "tp": KERAS.TruePositives,
    "fn": KERAS.FalseNegatives,
    "sensitivity": lambda: KERAS.SensitivityAtSpecificity(0.5),
    "precision_at_recall": lambda: KERAS.PrecisionAtRecall(0.5),
    "iou": lambda: KERAS.BinaryIoU([0, 1]),
    "hinge": KERAS.Hinge,
    "divergence": KERAS.KLDivergence,
    "f1": lambda: KERAS.F1Score(threshold=0.5),
}
SPARSE = {
    "sparse_accuracy": KERAS.SparseCategoricalAccuracy,
    "sparse_top": lambda: KERAS.SparseTopKCategoricalAccuracy(2),
    "sparse_crossentropy": KERAS.SparseCategoricalCrossentropy,
    "iou_of_probabilities": lambda: KERAS.MeanIoU(4, sparse_y_pred=False),
}
ONE_HOT = {
    **ELEMENTWISE,
    "categorical_accuracy": KERAS.CategoricalAccuracy,
    "top": lambda: KERAS.TopKCategoricalAccuracy(2),
    "categorical_crossentropy": KERAS.CategoricalCrossentropy,
    "categorical_hinge": KERAS.CategoricalHinge,
    "multi_auc": lambda: KERAS.AUC(multi_label=True, num_labels=4),
    "flat_auc": KERAS.AUC,
    "precision": KERAS.Precision,
    "recall_of_class_2": lambda: KERAS.Recall(class_id=2),
    "f1": lambda: KERAS.F1Score(average="macro"),
    "one_hot_iou": lambda: KERAS.OneHotMeanIoU(4),
}
OF_CLASSES = {"exact": KERAS.Accuracy, "iou": lambda: KERAS.MeanIoU(4)}


def network(likelihood, outputs, masked=False):
    """Returns a model whose inputs are the outputs of its network."""
    inputs = keras.Input(outputs.shape[1:])
    hidden = keras.layers.Masking(-9.0)(inputs) if masked else inputs
    return tfbbb.BayesianModel(
        inputs, keras.layers.Identity()(hidden), likelihood=likelihood
    )


def reported(model, x, y, chosen, weighted=(), **options):
    """Returns what a step reports of metrics."""
    model.compile(metrics=chosen, weighted_metrics=weighted, run_eagerly=True)
    return model.test_on_batch(x, y, return_dict=True, **options)


def named(kinds):
    found = []
    for name, kind in kinds.items():
        metric = kind()
        metric.name = name
        found.append(metric)
    return found


def value(kind, y_true, y_pred, weights=None):
    """Returns the value of a metric of Keras for arrays of the right form."""
    metric = kind()
    metric.update_state(y_true, y_pred, sample_weight=weights)
    return np.asarray(metric.result())


def check(found, kinds, y_true, y_pred, weights=None):
    for name, kind in kinds.items():
        expected = value(kind, y_true, y_pred, weights)
        # Sums of some hundred numbers in single precision.
        np.testing.assert_allclose(
            found[name], expected, rtol=2e-5, atol=1e-6, err_msg=name
        )


def softmax(logits):
    return np.asarray(keras.ops.softmax(logits))


def sigmoid(logits):
    return np.asarray(keras.ops.sigmoid(logits))


def normals(*shape):
    return GENERATOR.normal(size=shape).astype("float32")


LOGIT = 2.0 * normals(ROWS, 1)
LABEL = (normals(ROWS) + LOGIT[:, 0] > 0).astype("int32")
LOGITS = 2.0 * normals(ROWS, 4)
INDEX = (normals(ROWS, 4) + LOGITS).argmax(axis=1)


@pytest.mark.parametrize(
    "y",
    [LABEL.astype("float32")[:, None], LABEL.astype(bool)],
    ids=["column", "booleans"],
)
def test_binary_metrics_equal_those_of_a_sigmoid(y):
    model = network("bernoulli", LOGIT)
    found = reported(model, LOGIT, y, named(BINARY))
    check(found, BINARY, LABEL[:, None].astype("float32"), sigmoid(LOGIT))


@pytest.mark.parametrize(
    "y",
    [INDEX, INDEX[:, None], np.eye(4, dtype="float32")[INDEX]],
    ids=["vector", "column", "one-hot"],
)
def test_metrics_of_classes_equal_those_of_a_softmax(y):
    model = network("categorical", LOGITS)
    found = reported(model, LOGITS, y, named(SPARSE | ONE_HOT | OF_CLASSES))
    probabilities = softmax(LOGITS)
    check(found, SPARSE, INDEX, probabilities)
    check(found, ONE_HOT, np.eye(4, dtype="float32")[INDEX], probabilities)
    check(found, OF_CLASSES, INDEX, LOGITS.argmax(axis=1))


@pytest.mark.parametrize(
    ("likelihood", "y", "x"),
    [
        ("bernoulli", LABEL, LOGIT),
        ("bernoulli", np.eye(2)[LABEL], LOGIT),
        ("categorical", INDEX[:, None], LOGITS),
    ],
)
def test_accuracy_by_name_is_the_share_of_right_classes(likelihood, y, x):
    predicted = x[:, 0] > 0 if likelihood == "bernoulli" else x.argmax(axis=1)
    right = np.mean(predicted == (LABEL if likelihood == "bernoulli" else INDEX))
    found = reported(network(likelihood, x), x, y, ["accuracy", "acc"])
    assert found["accuracy"] == found["acc"] == pytest.approx(right)


@pytest.mark.parametrize(
    ("likelihood", "units", "k"),
    [
        ("normal", 1, 1),
        (likelihoods.Normal(heteroscedastic=True), 4, 2),
        (likelihoods.Gamma(), 2, 2),
        (likelihoods.NormalMixture(2), 6, 1),
    ],
    ids=lambda value: value if isinstance(value, str | int) else type(value).__name__,
)
def test_metrics_of_numbers_compare_the_mean(likelihood, units, k):
    x, y = 0.5 * normals(ROWS, units), GENERATOR.integers(1, 6, size=(ROWS, k))
    model = network(likelihood, x)
    mean = model.likelihood.mean(x)
    for given in (y, y.astype("float32")) if k > 1 else (y, y[:, 0]):
        found = reported(model, x, given, named(NUMBERS))
        check(found, NUMBERS, y.astype("float32"), mean)


SEQUENCE = normals(ROWS, STEPS, 1)


@pytest.mark.parametrize(
    ("form", "places"), [("places", (STEPS,)), ("column", (3, 2)), ("one-hot", (3, 2))]
)
def test_classes_of_steps_and_pixels_are_compared_one_by_one(form, places):
    x = 2.0 * normals(ROWS, *places, 4)
    y = GENERATOR.integers(4, size=(ROWS, *places))
    one_hot = np.eye(4, dtype="float32")[y]
    given = {"places": y, "column": y[..., None], "one-hot": one_hot}[form]
    several = {k: v for k, v in ONE_HOT.items() if k not in ("f1", "multi_auc")}
    model = network("categorical", x)
    found = reported(model, x, given, [*named(SPARSE | several | OF_CLASSES), "acc"])
    check(found, SPARSE, y, softmax(x))
    check(found, several, one_hot, softmax(x))
    check(found, OF_CLASSES, y, x.argmax(axis=-1))
    assert found["acc"] == pytest.approx(np.mean(x.argmax(axis=-1) == y))


WEIGHTS = GENERATOR.uniform(0.5, 2.0, size=ROWS).astype("float32")


def test_weights_of_rows_weight_all_their_steps():
    y = (SEQUENCE > 0.3).astype("int32")
    kinds = {name: BINARY[name] for name in ("mse", "auc", "precision", "iou")}
    found = reported(
        network("bernoulli", SEQUENCE),
        SEQUENCE,
        y,
        [],
        named(kinds),
        sample_weight=WEIGHTS,
    )
    spread = np.repeat(WEIGHTS[:, None], STEPS, axis=1)
    check(found, kinds, y.astype("float32"), sigmoid(SEQUENCE), spread)


def masked_sequences(units):
    """Returns outputs, those with the mark of masked steps, and the mask."""
    mask = np.arange(STEPS) < GENERATOR.integers(1, STEPS + 1, size=ROWS)[:, None]
    x = 2.0 * normals(ROWS, STEPS, units)
    return x, np.where(mask[..., None], x, -9.0).astype("float32"), mask


@pytest.mark.parametrize("weighted", [True, False])
def test_masked_steps_do_not_count_in_metrics_of_classes(weighted):
    x, marked, mask = masked_sequences(4)
    y = GENERATOR.integers(4, size=(ROWS, STEPS))
    kinds = {**SPARSE, **OF_CLASSES}
    chosen = {"weighted_metrics" if weighted else "metrics": named(kinds)}
    model = network("categorical", x, masked=True)
    model.compile(**chosen, run_eagerly=True)
    found = model.test_on_batch(
        marked, y, sample_weight=WEIGHTS if weighted else None, return_dict=True
    )
    spread = np.repeat(WEIGHTS[:, None], STEPS, axis=1)[mask] if weighted else None
    check(found, SPARSE, y[mask], softmax(x)[mask], spread)
    check(found, OF_CLASSES, y[mask], x.argmax(axis=-1)[mask], spread)


def test_void_classes_and_any_masked_targets_do_not_count():
    x, marked, mask = masked_sequences(4)
    y = GENERATOR.integers(4, size=(ROWS, STEPS))
    void = GENERATOR.random((ROWS, STEPS)) < 0.3
    given = np.where(mask, np.where(void, 255, y), -7)
    likelihood = likelihoods.Categorical(ignore_class=255)
    chosen = [*named(SPARSE | OF_CLASSES), "accuracy", metrics.BrierScore()]
    found = reported(network(likelihood, x, masked=True), marked, given, chosen)
    counted = mask & ~void
    check(found, SPARSE, y[counted], softmax(x)[counted])
    check(found, OF_CLASSES, y[counted], x.argmax(axis=-1)[counted])
    right = np.mean((x.argmax(axis=-1) == y)[counted])
    assert found["accuracy"] == pytest.approx(right, rel=1e-5)
    squares = np.sum((softmax(x) - np.eye(4)[y]) ** 2, axis=-1)
    assert found["brier_score"] == pytest.approx(squares[counted].mean(), rel=1e-5)


def test_masked_steps_do_not_count_in_scores():
    x, marked, mask = masked_sequences(4)
    y = GENERATOR.integers(4, size=(ROWS, STEPS))
    scores = [
        metrics.NegativeLogLikelihood(),
        metrics.BrierScore(),
        metrics.ExpectedCalibrationError(),
    ]
    found = reported(network("categorical", x, masked=True), marked, y, scores)
    log_prob = np.log(np.take_along_axis(softmax(x), y[..., None], -1))[..., 0]
    # A row has one density, of all its steps.
    expected = -np.sum(log_prob * mask) / ROWS
    assert found["negative_log_likelihood"] == pytest.approx(expected, rel=1e-5)
    squares = np.sum((softmax(x) - np.eye(4)[y]) ** 2, axis=-1)
    assert found["brier_score"] == pytest.approx(squares[mask].mean(), rel=1e-5)
    chosen = softmax(x)[mask]
    right, confidence = chosen.argmax(axis=-1) == y[mask], chosen.max(axis=-1)
    excess = np.bincount((15 * confidence).astype(int), right - confidence)
    expected = np.abs(excess).sum() / mask.sum()
    assert found["expected_calibration_error"] == pytest.approx(expected, rel=1e-4)


def test_metrics_compare_the_mean_over_members_and_samples():
    inputs = keras.Input((4,))
    outputs = tfbbb.layers.DenseVariational(
        1,
        posterior="point",
        bias_posterior="point",
        estimator=tfbbb.estimators.Weight(num_samples=2),
        kl_weight=1.0,
    )(inputs)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood="bernoulli", members=3)
    model.compile(
        keras.optimizers.SGD(0.0), metrics=["accuracy", "mse"], run_eagerly=True
    )
    history = model.fit(LOGITS, LABEL, verbose=0).history
    of_members = sigmoid(np.reshape(model(LOGITS), (3, ROWS)))
    probability = of_members.mean(axis=0)
    right = np.mean((probability > 0.5) == LABEL)
    assert history["accuracy"][0] == pytest.approx(right, rel=1e-5)
    error = np.mean((probability - LABEL) ** 2)
    assert history["mse"][0] == pytest.approx(error, rel=1e-5)
    np.testing.assert_allclose(
        model.predict(LOGITS, verbose=0), probability[:, None], rtol=1e-5
    )


@pytest.mark.parametrize(
    ("likelihood", "x", "expected"),
    [
        ("bernoulli", LOGIT, sigmoid(LOGIT)),
        ("bernoulli", SEQUENCE, sigmoid(SEQUENCE)),
        ("categorical", LOGITS, softmax(LOGITS)),
        ("poisson", LOGIT, np.exp(LOGIT)),
        ("normal", SEQUENCE, SEQUENCE),
    ],
)
def test_predict_returns_what_the_metrics_compare(likelihood, x, expected):
    model = network(likelihood, x)
    np.testing.assert_allclose(model.predict(x, verbose=0), expected, rtol=1e-5)


def as_given(y_true, y_pred):
    assert y_true.shape[1:] == (1,) or len(y_true.shape) == 1
    return tf.reduce_mean(tf.cast(y_true, tf.float32)) + y_pred[..., 0]


class OwnMetric(keras.metrics.Metric):
    """Remembers the shapes of a row that it gets."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.shapes = [tuple(y_true.shape[1:]), tuple(y_pred.shape[1:])]

    def result(self):
        return 0.0


class OwnIoU(keras.metrics.MeanIoU):
    """A common recipe: its predictions are probabilities."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(y_true, tf.argmax(y_pred, axis=-1), sample_weight)


def test_own_metrics_get_what_a_plain_network_gives():
    for likelihood, x, y, shapes in (
        ("categorical", LOGITS, INDEX, [(), (4,)]),
        ("categorical", LOGITS, INDEX[:, None], [(1,), (4,)]),
        ("bernoulli", LOGIT, LABEL, [(1,), (1,)]),
        ("normal", LOGIT, LOGIT[:, 0], [(1,), (1,)]),
    ):
        metric = OwnMetric()
        found = reported(network(likelihood, x), x, y, [metric, as_given])
        assert metric.shapes == shapes
        assert np.isfinite(found["as_given"])
    found = reported(
        network("categorical", LOGITS), LOGITS, INDEX, [OwnIoU(4, name="own")]
    )
    check(found, {"own": OF_CLASSES["iou"]}, INDEX, LOGITS.argmax(axis=1))


@pytest.mark.parametrize(
    "metric",
    [
        KERAS.BinaryCrossentropy(from_logits=True),
        KERAS.AUC(from_logits=True),
        keras.losses.BinaryCrossentropy(from_logits=True),
        KERAS.BinaryAccuracy(threshold=0.0),
    ],
    ids=["crossentropy", "auc", "loss", "threshold"],
)
def test_metrics_of_logits_are_refused(metric):
    with pytest.raises(ValueError, match=r"get probabilities.*Received: (from|thresh)"):
        reported(network("bernoulli", LOGIT), LOGIT, LABEL, [metric])


@pytest.mark.parametrize(
    ("likelihood", "x", "y"),
    [
        ("normal", SEQUENCE, np.zeros(ROWS)),
        ("normal", SEQUENCE, np.zeros((ROWS, STEPS + 1))),
        ("normal", LOGIT, np.zeros((ROWS, 1, 1))),
        ("categorical", normals(ROWS, 3, 2, 4), np.zeros((ROWS, 2, 3))),
    ],
)
def test_targets_of_other_places_are_refused(likelihood, x, y):
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(10)
    for run in (
        lambda model: model.fit(x, y, verbose=0),
        lambda model: model.evaluate(data, verbose=0),
    ):
        model = network(likelihood, x)
        model.compile(run_eagerly=True)
        with pytest.raises(ValueError, match=r"must have the shape \[rows.*Received"):
            run(model)
