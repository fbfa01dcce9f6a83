import keras
import numpy as np
import pytest
import tensorflow as tf

from tfbbb import posteriors
from tfbbb.bayes.divergences import kl_divergence
from tfbbb.bayes.estimators import Flipout, Local, Weight
from tfbbb.layers import DenseVariational


def built(units=3, input_dim=4, **kwargs):
    layer = DenseVariational(units, **{"kl_weight": 0.1, "seed": 0, **kwargs})
    layer.build((None, input_dim))
    return layer


def test_the_divergence_of_a_new_layer_is_that_from_the_default_priors():
    layer = built(input_dim=16)
    for weight, scale, prior in ((layer.kernel, 0.02 / 4, 0.5), (layer.bias, 0.02, 1)):
        mean = np.asarray(weight.mean, "float64")
        exact = np.log(prior / scale) + (scale**2 + mean**2) / (2 * prior**2) - 0.5
        np.testing.assert_allclose(kl_divergence(weight, None), exact.sum(), rtol=1e-6)


def test_initial_posterior_has_the_initializers_mean_and_the_initial_scale():
    layer = built(
        input_dim=16,
        kernel_initializer="ones",
        bias_initializer=keras.initializers.Constant(2.0),
        posterior=posteriors.MeanFieldNormal(initial_scale=0.2),
        bias_posterior=posteriors.MeanFieldNormal(initial_scale=0.1),
    )
    np.testing.assert_allclose(layer.kernel.mean, np.ones((16, 3)))
    np.testing.assert_allclose(layer.bias.mean, 2.0 * np.ones(3))
    np.testing.assert_allclose(layer.kernel.stddev, 0.05 * np.ones((16, 3)), rtol=1e-6)
    np.testing.assert_allclose(layer.bias.stddev, 0.1 * np.ones(3), rtol=1e-6)


def test_layers_with_the_same_seed_draw_different_noise():
    def build():
        layers = [
            DenseVariational(3, seed=7, kernel_initializer="zeros", kl_weight=0.1)
            for _ in range(2)
        ]
        inputs = keras.Input((2,))
        return keras.Model(inputs, [layer(inputs) for layer in layers])

    model = build()
    x = np.ones((4, 2), "float32")
    first, second = model(x)
    assert np.abs(np.asarray(first) - np.asarray(second)).min() > 0
    # The same program draws the same again, whatever the layers are called.
    np.testing.assert_array_equal(build()(x)[1], second)


def test_same_seed_gives_the_same_sequence_of_draws():
    x = np.ones((2, 4), "float32")
    first, second = (built(kernel_initializer="ones") for _ in range(2))
    for _ in range(3):
        np.testing.assert_array_equal(first(x), second(x))


@pytest.mark.parametrize("training", [True, False])
def test_every_ordinary_call_adds_the_weighted_divergence(training):
    layer = built(kl_weight=0.25)
    layer(np.ones((2, 4), "float32"), training=training)
    assert len(layer.losses) == 1
    np.testing.assert_allclose(layer.losses[0], 0.25 * layer.step_kl, rtol=1e-6)
    assert layer.step_kl > 0


@pytest.mark.parametrize("estimator", ["weight", "flipout", "auto"])
def test_a_shared_layer_has_one_draw_per_step(estimator):
    layer = DenseVariational(3, estimator=estimator, kl_weight=1.0)
    left, right = keras.Input((4,)), keras.Input((4,))
    model = keras.Model([left, right], layer(left) - layer(right))
    x = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")
    np.testing.assert_allclose(model([x, x]), np.zeros((5, 3)), atol=1e-6)
    assert not np.allclose(model([x, 2 * x]), model([x, 2 * x]))


def once():
    return keras.Sequential([DenseVariational(3, kl_weight=1.0)])


def grown():
    model = keras.Sequential([keras.Input((4,))])
    for units in (3, 2):
        model.add(DenseVariational(units, kl_weight=1.0))  # builds all layers again
    return model


def siamese():
    encoder = keras.Sequential([keras.Input((4,)), DenseVariational(3, kl_weight=1.0)])
    rows = keras.Input((4,))
    return keras.Model(rows, encoder(rows) - encoder(2.0 * rows))


class Twice(keras.Model):
    """A model whose calls of a layer are unknown."""

    def __init__(self):
        super().__init__()
        self.dense = DenseVariational(3, kl_weight=1.0)

    def call(self, x):
        return self.dense(x) - self.dense(x)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (once, [Local]),
        (grown, [Local, Local]),
        (siamese, [Flipout, Flipout]),
        (Twice, [Flipout, Flipout]),
    ],
)
def test_auto_chooses_local_only_where_weights_are_used_once(
    build, expected, monkeypatch
):
    model, x, used = build(), np.ones((2, 4), "float32"), []
    model(x)  # builds the layers, with calls of its own
    for estimator in (Flipout, Local, Weight):

        def record(self, layer, inputs, call=estimator.__call__):
            used.append(type(self))
            return call(self, layer, inputs)

        monkeypatch.setattr(estimator, "__call__", record)
    model(x)
    assert used == expected


def test_training_without_kl_weight_raises():
    model = keras.Sequential([keras.Input((4,)), DenseVariational(1)])
    model.compile("sgd", loss="mse")
    x, y = np.ones((8, 4), "float32"), np.ones((8, 1), "float32")
    with pytest.raises(ValueError, match=r"kl_weight=1/N"):
        model.fit(x, y, verbose=0)
    assert np.isnan(model.evaluate(x, y, verbose=0))
    assert np.isfinite(model.predict(x, verbose=0)).all()


def test_layers_may_be_built_by_the_first_training_step():
    x, y = np.ones((8, 4), "float32"), np.ones(8, "float32")
    model = keras.Sequential([DenseVariational(1, kl_weight=0.1)])
    model.compile("sgd", loss="mse")
    assert np.isfinite(model.fit(x, y, verbose=0).history["loss"][0])
    unset = keras.Sequential([DenseVariational(1)])
    unset.compile("sgd", loss="mse")
    with pytest.raises(ValueError, match=r"kl_weight=1/N"):
        unset.fit(x, y, verbose=0)


@pytest.mark.usefixtures("compiled_functions")
def test_kl_weight_changes_without_a_retrace_and_is_saved(tmp_path):
    layer = DenseVariational(1, kl_weight=0.5)
    model = keras.Sequential([keras.Input((4,)), layer])
    traces = []

    @tf.function
    def loss(x):
        traces.append(1)
        model(x, training=True)
        return model.losses[0]

    x = tf.ones((2, 4))
    before = loss(x)
    layer.kl_weight.assign(0.25)
    np.testing.assert_allclose(loss(x), 0.5 * before, rtol=1e-6)
    assert len(traces) == 1
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert float(loaded.layers[0].kl_weight.numpy()) == 0.25


def test_local_has_finite_gradients_for_rows_of_zeros():
    layer = built(estimator="local", use_bias=False)
    x = tf.Variable([[0.0] * 4, [1.0] * 4])
    with tf.GradientTape() as tape:
        outputs = tf.reduce_sum(tf.square(layer(x)))
    gradients = tape.gradient(outputs, [x, *[v.value for v in layer.trainable_weights]])
    for gradient in gradients:
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("kl_weight", [-0.1, float("nan"), float("inf")])
def test_refuses_a_negative_or_infinite_kl_weight(kl_weight):
    with pytest.raises(ValueError, match=f"Received: kl_weight={kl_weight}"):
        DenseVariational(3, kl_weight=kl_weight)


@pytest.mark.parametrize(
    ("argument", "valid"),
    [
        ("posterior", "'mean_field_normal'"),
        ("bias_prior", "'normal', 'scale_mixture_normal'"),
        ("estimator", "'auto', 'closed_form', 'flipout', 'local', 'score_function'"),
    ],
)
def test_unknown_names_are_refused_with_the_list_of_valid_ones(argument, valid):
    with pytest.raises(ValueError, match=f"{valid}.*Received: .*'nonsense'"):
        DenseVariational(3, **{argument: "nonsense"})
