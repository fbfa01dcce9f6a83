"""What cannot be propagated is named, and can be taught."""

import keras
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from keras import layers

import tfbbb
from tests.uncertain_inputs import model_of
from tfbbb.bayes.posteriors import (
    FullCovarianceNormal,
    LowRankNormal,
    MatrixNormal,
    Rank1,
)
from tfbbb.layers import (
    DenseVariational,
    EmbeddingVariational,
    LSTMVariational,
    MultiHeadAttentionVariational,
)
from tfbbb.prediction.moments import (
    MomentsError,
    operations,
    output_moments,
    prepared,
    register_activation,
    register_moments,
)

tfd = tfp.distributions

NORMALS = ([0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.0, 1.0])


class Squashed(layers.Layer):
    def call(self, inputs):
        return keras.ops.tanh(inputs)


class Doubled(layers.Dense):
    """A layer that computes something else than its base."""

    def call(self, inputs):
        return 2.0 * super().call(inputs)


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.layer = DenseVariational(2)

    def call(self, inputs):
        return self.layer(inputs)


def unknown_activation(x):
    return x


REFUSED = [
    (lambda: layers.Softmax(name="bad"), (4,), "no rule for its class"),
    (lambda: Squashed(name="bad"), (4,), "no rule for its class"),
    (lambda: Doubled(2, name="bad"), (4,), "no rule for its class"),
    (lambda: layers.LSTM(2, name="bad"), (2, 2), "no rule for its class"),
    (lambda: LSTMVariational(2, name="bad"), (2, 2), "no rule for its class"),
    (
        lambda: layers.TimeDistributed(DenseVariational(2), name="bad"),
        (2, 2),
        "no rule for its class",
    ),
    (lambda: layers.Activation("softmax", name="bad"), (4,), "activation 'softmax'"),
    (lambda: layers.Dense(2, "log_softmax", name="bad"), (4,), "'log_softmax'"),
    (
        lambda: DenseVariational(2, unknown_activation, name="bad"),
        (4,),
        "'unknown_activation'",
    ),
    (lambda: layers.Dense(2, layers.ReLU(), name="bad"), (4,), "is a layer"),
    (lambda: layers.ReLU(threshold=1.0, name="bad"), (4,), "threshold"),
    (
        lambda: layers.ReLU(max_value=1.0, negative_slope=0.1, name="bad"),
        (4,),
        "slope",
    ),
    (
        lambda: layers.UpSampling2D(interpolation="bilinear", name="bad"),
        (2, 2, 1),
        "interpolates",
    ),
    (lambda: EmbeddingVariational(9, 2, name="bad"), (4,), "indices are random"),
    *(
        (
            lambda posterior=posterior: DenseVariational(
                2, posterior=posterior, name="bad"
            ),
            (4,),
            "depend on each other",
        )
        for posterior in (
            FullCovarianceNormal(),
            LowRankNormal(),
            MatrixNormal("full"),
            Rank1(),
        )
    ),
]


@pytest.mark.parametrize(("make", "shape", "reason"), REFUSED)
def test_the_first_operation_without_a_rule_is_named(make, shape, reason):
    model = model_of(make(), *NORMALS, shape)
    for function in (operations, prepared):
        with pytest.raises(MomentsError, match=reason):
            function(model)
    with pytest.raises(MomentsError, match=r"through 'bad'.*Received: ") as caught:
        output_moments(model, tf.ones((1, 4)))
    assert "method='local'" in str(caught.value)
    assert caught.value.operation == "bad"
    assert isinstance(caught.value, ValueError)


def test_an_attention_layer_is_refused():
    inputs = keras.Input((3, 4))
    outputs = MultiHeadAttentionVariational(2, 2)(inputs, inputs)
    with pytest.raises(MomentsError, match="no rule for its class"):
        operations(keras.Model(inputs, outputs))


def test_a_model_without_a_graph_is_refused():
    model = Subclassed()
    model(tf.ones((1, 3)))
    for function in (
        operations,
        prepared,
        lambda m: output_moments(m, tf.ones((1, 3))),
    ):
        with pytest.raises(MomentsError, match="no functional or sequential model"):
            function(model)


def test_a_deprecated_option_of_keras_is_refused():
    with pytest.warns(UserWarning, match="deprecated"):
        layer = layers.LayerNormalization(rms_scaling=True)
    with pytest.raises(MomentsError, match="rms_scaling"):
        operations(model_of(layer, *NORMALS, (4,)))


def test_a_quantised_kernel_is_refused():
    layer = layers.Dense(2)
    layer.build((None, 4))
    layer.quantize("int8")
    with pytest.raises(MomentsError, match="quantised"):
        operations(model_of(layer, *NORMALS, (4,)))


def test_masks_are_refused():
    inputs = keras.Input((4,))
    masked = EmbeddingVariational(5, 2, mask_zero=True)(inputs)
    with pytest.raises(MomentsError, match="makes a mask"):
        operations(keras.Model(inputs, masked))
    certain = layers.Embedding(5, 2, mask_zero=True)(inputs)
    model = keras.Model(inputs, DenseVariational(2)(certain))
    with pytest.raises(MomentsError, match="have a mask"):
        output_moments(model, tf.ones((1, 4)))


def test_layers_that_are_called_as_in_training_are_refused():
    inputs = keras.Input((4,))
    dropped = layers.Dropout(0.5)(inputs, training=True)
    with pytest.raises(MomentsError, match="training=True"):
        operations(keras.Model(inputs, DenseVariational(2)(dropped)))


def test_division_by_what_is_random_is_refused():
    inputs = keras.Input((4,))
    with pytest.raises(MomentsError, match="divides by what is random"):
        operations(keras.Model(inputs, 1.0 / DenseVariational(2)(inputs)))


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (lambda x: x[1], "some of the rows"),
        (lambda x: x[0, ...], "some of the rows"),
        (lambda x: keras.ops.reshape(x, (2, -1)), "number of rows"),
        (lambda x: keras.ops.concatenate([x, x], axis=0), "batches of rows"),
    ],
)
def test_operations_on_the_rows_are_refused(operation, reason):
    with pytest.raises(MomentsError, match=reason):
        operations(model_of(operation, *NORMALS, (4,)))


def test_sums_over_different_numbers_of_axes_are_refused():
    inputs = keras.Input((4,))
    hidden = DenseVariational(4)(inputs)
    outputs = layers.Add()([layers.RepeatVector(3)(hidden), hidden])
    with pytest.raises(MomentsError, match="different numbers of axes"):
        operations(keras.Model(inputs, outputs))


def no_known_variance(loc, log_scale):
    return NoMoments(loc, tf.exp(log_scale))


class NoMoments(tfd.Logistic):
    def _stddev(self):
        raise NotImplementedError


@pytest.mark.parametrize("inputs_are_random", [False, True])
def test_weights_without_a_known_variance_are_refused(inputs_are_random):
    layer = DenseVariational(2, posterior=no_known_variance)
    if inputs_are_random:
        model = model_of(layer, *NORMALS, (4,))
    else:
        model = keras.Sequential([keras.Input((4,)), layer])
    with pytest.raises(MomentsError, match="variance of its kernel is not known"):
        operations(model)


def test_a_number_of_positions_that_is_not_known_is_refused():
    inputs = keras.Input((None, 4))
    outputs = layers.GlobalMaxPooling1D()(DenseVariational(2)(inputs))
    with pytest.raises(MomentsError, match="number of positions"):
        operations(keras.Model(inputs, outputs))


def test_members_that_disagree_are_refused():
    inputs = keras.Input((4,))
    hidden = DenseVariational(4, members=2)(inputs)
    model = keras.Model(inputs, DenseVariational(4, members=3)(hidden))
    with pytest.raises(ValueError, match="same number of members"):
        operations(model)


def test_a_custom_layer_can_have_a_rule():
    class Tripled(layers.Layer):
        def call(self, inputs):
            return 3.0 * inputs

    @register_moments(Tripled)
    def tripled(call):
        call.approximate("It is only an example.")
        x = call.inputs
        return x.replace(mean=3.0 * x.mean, variance=9.0 * x.variance)

    model = model_of(Tripled(), *NORMALS, (4,))
    mean, variance = output_moments(model, tf.ones((1, 4)))
    assert mean[0, 0].numpy().tolist() == [0.0, 3.0, 6.0, 9.0]
    assert variance[0, 0].numpy().tolist() == pytest.approx([9.0] * 4)
    assert operations(model)[-1].why == "It is only an example."


def test_a_custom_activation_can_have_a_rule():
    def square(x):
        return x * x

    @register_activation(square)
    def square_of_normal(mean, variance):
        m2 = tf.square(mean)
        return m2 + variance, 2.0 * tf.square(variance) + 4.0 * m2 * variance

    model = model_of(layers.Activation(square), *NORMALS, (4,))
    mean, variance = output_moments(model, tf.ones((1, 4)))
    assert mean[0, 0].numpy().tolist() == pytest.approx([1.0, 2.0, 5.0, 10.0])
    assert variance[0, 0].numpy().tolist() == pytest.approx([2.0, 6.0, 18.0, 38.0])


@pytest.mark.parametrize("kind", [int, "Dense", layers.Dense(2), tfbbb])
def test_rules_are_for_classes_of_operations(kind):
    with pytest.raises(ValueError, match=r"Received: kinds="):
        register_moments(kind)
