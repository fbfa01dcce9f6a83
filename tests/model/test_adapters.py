"""Low-rank adapters leave a network as it was, are trained alone, and merge."""

import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.base.private_apis import sublayers

GENERATOR = np.random.default_rng(0)


def images():
    layers = keras.layers
    inputs = keras.Input((9, 9, 2))
    hidden = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")(inputs)
    hidden = layers.BatchNormalization(name="norm")(hidden)
    hidden = layers.Conv2D(6, 3, dilation_rate=2, use_bias=False)(hidden)
    hidden = layers.Dense(5, "gelu")(layers.Flatten()(hidden))
    return keras.Model(inputs, layers.Dense(3, "softmax", name="last")(hidden))


def words():
    layers = keras.layers
    inputs = keras.Input((5,), dtype="int32")
    hidden = layers.Embedding(7, 4, mask_zero=True, name="words")(inputs)
    hidden = layers.TimeDistributed(layers.Dense(6, "tanh"))(hidden)
    hidden = layers.LSTM(4, return_sequences=True, name="lstm")(hidden)
    inner = keras.Sequential([keras.Input((4,)), layers.Dense(4, "relu")], name="inner")
    hidden = inner(layers.GlobalAveragePooling1D()(hidden))
    shared = layers.Dense(4)
    return keras.Model(
        inputs, layers.Dense(3, "softmax", name="last")(shared(shared(hidden)))
    )


def volumes():
    layers = keras.layers
    inputs = keras.Input((4, 4, 4, 1))
    hidden = layers.Conv3D(2, 2, activation="elu")(inputs)
    hidden = layers.Conv1D(3, 2, strides=2)(layers.Reshape((9, 6))(hidden))
    return keras.Model(inputs, layers.Dense(3, name="last")(layers.Flatten()(hidden)))


CASES = {
    "images": (images, GENERATOR.normal(size=(12, 9, 9, 2)).astype("float32")),
    "words": (words, GENERATOR.integers(0, 7, size=(12, 5))),
    "volumes": (volumes, GENERATOR.normal(size=(12, 4, 4, 4, 1)).astype("float32")),
}
LABELS = np.arange(12) % 3


@pytest.fixture(params=CASES)
def case(request):
    make, x = CASES[request.param]
    keras.utils.set_random_seed(0)
    network = make()
    return network, tfbbb.adapters.add(network, rank=2), x


def adapters_of(network):
    return [x for x in sublayers(network) if isinstance(x, tfbbb.adapters.Adapted)]


def filled(network):
    """Gives the second factors values: they start at 0."""
    for each in adapters_of(network):
        kernel = each.up.weights[0]
        kernel.assign(0.5 * GENERATOR.normal(size=kernel.shape))
    return network


def test_a_network_with_new_adapters_computes_what_it_did(case):
    network, adapted, x = case
    np.testing.assert_allclose(adapted(x), network(x), atol=1e-6)


def test_only_adapters_and_the_last_layer_are_trained(case):
    _, adapted, x = case
    found = adapters_of(adapted)
    expected = {id(w) for each in found for w in (*each.down.weights, *each.up.weights)}
    expected |= {id(w) for w in adapted.get_layer("last").weights}
    assert {id(w) for w in adapted.trainable_weights} == expected
    kept = [w for w in adapted.weights if id(w) not in expected]
    before = [w.numpy() for w in kept]
    adapted.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
    adapted.fit(x, LABELS, epochs=2, verbose=0)
    for old, weight in zip(before, kept, strict=True):
        if weight.dtype == "float32":
            np.testing.assert_array_equal(old, weight)
    assert all(np.abs(each.up.weights[0]).max() > 0 for each in found)


def test_merged_kernels_are_frozen_ones_plus_products(case):
    network, adapted, x = case
    merged = tfbbb.adapters.merge(filled(adapted))
    assert np.abs(adapted(x) - network(x)).max() > 1e-3
    np.testing.assert_allclose(merged(x), adapted(x), atol=2e-6)
    assert [type(layer) for layer in sublayers(merged)] == [
        type(layer) for layer in sublayers(network)
    ]
    assert len(merged.trainable_weights) == len(network.trainable_weights)


def test_first_factors_and_last_layers_get_the_posterior(case):
    _, adapted, x = case
    found = adapters_of(filled(adapted))
    small = tfbbb.posteriors.MeanFieldNormal(initial_scale=1e-7)
    twin = tfbbb.convert(
        adapted, where="adapters", kl_weight=0.1, posterior=small, bias_posterior=small
    )
    names = [layer.name for layer in twin.conversion.layers if layer.posterior]
    assert names == [*dict.fromkeys(each.down.name for each in found), "last"]
    np.testing.assert_allclose(twin(x), adapted(x), atol=2e-5)
    merged = tfbbb.adapters.merge(twin)
    np.testing.assert_allclose(merged(x), adapted(x), atol=2e-5)


def test_twins_of_adapted_networks_train_and_are_saved(tmp_path):
    make, x = CASES["images"]
    adapted = tfbbb.adapters.add(make(), rank=2)
    twin = tfbbb.convert(adapted, where="adapters", likelihood="categorical")
    twin.compile("adam", run_eagerly=True)
    twin.fit(x, LABELS, verbose=0)
    expected = twin.predictive(x, 4, seed=3).probabilities
    twin.save(tmp_path / "twin.keras")
    loaded = keras.saving.load_model(tmp_path / "twin.keras")
    np.testing.assert_allclose(
        loaded.predictive(x, 4, seed=3).probabilities, expected, atol=1e-6
    )
    assert len(loaded.trainable_weights) == len(twin.trainable_weights)


def test_where_chooses_the_layers_with_adapters():
    network = words()
    adapted = tfbbb.adapters.add(network, where=["inner", "words"])
    names = [each.name for each in adapters_of(adapted)]
    by_rule = tfbbb.adapters.add(network, where=lambda layer: layer.name in names)
    assert len(names) == 2
    assert [each.name for each in adapters_of(by_rule)] == names


def test_lora_of_keras_is_merged_into_the_frozen_kernel():
    network = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(6, "relu"), keras.layers.Dense(2)]
    )
    network.layers[0].enable_lora(2)
    network.layers[0].lora_kernel_b.assign(GENERATOR.normal(size=(2, 6)))
    x = GENERATOR.normal(size=(5, 4)).astype("float32")
    np.testing.assert_allclose(tfbbb.adapters.add(network)(x), network(x), atol=1e-5)


def test_layers_without_adapters_are_refused_by_name():
    network = words()
    grouped = keras.Sequential(
        [
            keras.Input((4, 4, 2)),
            keras.layers.Conv2D(4, 2, groups=2, name="grouped"),
            keras.layers.Flatten(),
            keras.layers.Dense(1),
        ]
    )
    for where, reason in (("lstm", "no adapter for its class"), ("last", "whole")):
        with pytest.raises(ValueError, match=f"'{where}' gets no adapter.*{reason}"):
            tfbbb.adapters.add(network, where=[where])
    with pytest.raises(ValueError, match="channels are in groups"):
        tfbbb.adapters.add(grouped)


def test_adapters_are_added_once_and_merged_where_they_are():
    network = volumes()
    adapted = tfbbb.adapters.add(network)
    with pytest.raises(ValueError, match="without adapters and posteriors"):
        tfbbb.adapters.add(adapted)
    with pytest.raises(ValueError, match="without adapters and posteriors"):
        tfbbb.adapters.add(tfbbb.convert(network, kl_weight=0.1))
    with pytest.raises(ValueError, match="has no adapters"):
        tfbbb.adapters.merge(network)
    with pytest.raises(ValueError, match="has no adapters"):
        tfbbb.convert(network, where="adapters", kl_weight=0.1)
    with pytest.raises(ValueError, match="rank"):
        tfbbb.adapters.add(network, rank=0)
