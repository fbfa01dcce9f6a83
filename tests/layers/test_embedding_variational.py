import keras
import numpy as np
import pytest
import tensorflow as tf

from tfbbb.layers import EmbeddingVariational

X = np.array([[1, 5], [0, 1], [3, 3]])


def embedding(**options):
    layer = EmbeddingVariational(6, 3, **{"kl_weight": 0.1, "seed": 0, **options})
    layer.build(X.shape)
    return layer


def test_the_default_prior_does_not_depend_on_the_fan_in():
    layer = embedding()
    assert layer.kernel.fan_in == 1
    assert layer.kernel.prior.scale_for(layer.kernel.fan_in) == 0.5
    assert np.abs(layer.embeddings.mean).max() <= 0.05


@pytest.mark.parametrize(
    ("estimator", "policy"),
    [
        ("weight", "mixed_bfloat16"),
        ("flipout", "mixed_float16"),
        ("local", "mixed_float16"),
    ],
)
def test_mixed_precision_holds_large_indices_and_finite_gradients(estimator, policy):
    layer = EmbeddingVariational(
        5000, 2, dtype=policy, estimator=estimator, kl_weight=0.1
    )
    # Of these, neither half precision tells one from the next.
    x = np.array([[4097, 4098]], "float32")
    with tf.GradientTape() as tape:
        outputs = layer(x)
        loss = tf.reduce_sum(tf.square(tf.cast(outputs, tf.float32)))
    assert outputs.dtype == layer.compute_dtype
    assert layer.losses[0].dtype == layer.kernel.stddev.dtype == tf.float32
    gradients = tape.gradient(loss, [v.value for v in layer.trainable_weights])
    for gradient in map(tf.convert_to_tensor, gradients):
        assert np.isfinite(gradient).all()
        assert set(np.nonzero(gradient)[0]) == {4097, 4098}


def test_index_zero_is_masked_where_asked_for():
    layer = embedding(mask_zero=True)
    np.testing.assert_array_equal(layer.compute_mask(tf.constant(X)), X != 0)
    assert embedding().compute_mask(tf.constant(X)) is None
    # The mask reaches a later layer: padding has no part in the mean.
    inputs = keras.Input((2,), dtype="int32")
    model = keras.Model(
        inputs,
        keras.layers.GlobalAveragePooling1D()(
            EmbeddingVariational(
                6, 3, mask_zero=True, kl_weight=0.1, estimator="weight", seed=0
            )(inputs)
        ),
    )
    means = model(np.array([[0, 1], [1, 1]]))
    np.testing.assert_allclose(means[0], means[1], rtol=1e-5)


def test_auto_chooses_local_for_one_index_per_row_only():
    layer = embedding()
    assert layer.is_local_exact(1, calls=1)
    assert not layer.is_local_exact(1, calls=2)
    assert not layer.is_local_exact(2, calls=1)
    layer.calls_in_this_pass = lambda: 1
    assert type(layer.estimator.choose(layer, 1)).__name__ == "Local"
    assert type(layer.estimator.choose(layer, 2)).__name__ == "Flipout"


def test_a_table_that_is_known_is_the_initial_mean_and_no_value():
    table = np.random.default_rng(0).normal(size=(6, 3)).astype("float32")
    layer = embedding(embeddings_initializer=keras.initializers.Constant(table))
    np.testing.assert_array_equal(layer.embeddings.mean, table)
    with pytest.raises(TypeError, match="no argument 'weights'"):
        EmbeddingVariational(6, 3, weights=table)
