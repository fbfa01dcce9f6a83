"""One small model that passes a row through a layer of every kind."""

import itertools

import keras
import numpy as np
import tensorflow as tf

import tfbbb
from tfbbb import layers
from tfbbb.bayes.estimators import Local, Weight

# Positional arguments, options, and what the layer sees of a row of 24 numbers.
KINDS = {
    layers.Conv1DVariational: (
        (2, 3),
        {"padding": "causal", "dilation_rate": 2},
        (8, 3),
    ),
    layers.Conv2DVariational: ((4, 2), {"groups": 2}, (3, 4, 2)),
    layers.Conv3DVariational: ((2, 2), {}, (2, 3, 2, 2)),
    layers.Conv1DTransposeVariational: ((2, 3), {"strides": 2}, (8, 3)),
    layers.Conv2DTransposeVariational: ((2, 2), {"strides": 2}, (3, 4, 2)),
    layers.Conv3DTransposeVariational: ((2, 2), {}, (2, 3, 2, 2)),
    layers.DenseVariational: ((3,), {}, (24,)),
    layers.DepthwiseConv2DVariational: ((2,), {"depth_multiplier": 2}, (3, 4, 2)),
    layers.EinsumDenseVariational: (
        ("abc,bcd->abd", (None, 3)),
        {"bias_axes": "bd"},
        (4, 6),
    ),
    layers.EmbeddingVariational: ((5, 2), {}, (24,)),
    layers.GRUVariational: ((2,), {}, (8, 3)),
    layers.LSTMVariational: ((2,), {}, (8, 3)),
    layers.MultiHeadAttentionVariational: ((2, 2), {}, (4, 6)),
    layers.SeparableConv2DVariational: ((3, 2), {}, (3, 4, 2)),
    layers.SimpleRNNVariational: ((2,), {}, (8, 3)),
}
RECURRENT = (layers.GRUVariational, layers.LSTMVariational, layers.SimpleRNNVariational)
# Where all of them take too long: layers of one kernel, of a table, and of parts.
FEW_KINDS = (
    layers.Conv2DVariational,
    layers.EmbeddingVariational,
    layers.MultiHeadAttentionVariational,
)
ALMOST_A_POINT = tfbbb.posteriors.MeanFieldNormal(initial_scale=1e-6)
GENERATOR = np.random.default_rng(0)
# An odd number of rows, so that parts of them differ.
X = GENERATOR.normal(size=(13, 24)).astype("float32")
Y = X[:, :1] - 0.5 * X[:, 1:2] ** 2


def layer_of(kind, members=1, **options):
    """Returns a layer of a kind; recurrent ones take `weight` in place of `local`."""
    arguments, own, _ = KINDS[kind]
    estimator = tfbbb.estimators.get(options.pop("estimator", "auto"))
    if kind in RECURRENT and isinstance(estimator, Local):
        estimator = Weight(estimator.num_samples)
    if kind is layers.EmbeddingVariational:
        options.pop("bias_initializer", None)
        own = {"embeddings_initializer": keras.initializers.RandomNormal(stddev=0.5)}
    return kind(*arguments, **own, estimator=estimator, members=members, **options)


def applied(layer, inputs):
    """Returns one number for each row of 24 that a layer of any kind is called with."""
    _, _, shape = KINDS[type(layer)]
    seen = keras.layers.Reshape(shape)(inputs)
    if isinstance(layer, layers.MultiHeadAttentionVariational):
        outputs = layer(seen, seen)
    elif isinstance(layer, layers.EmbeddingVariational):
        outputs = layer(keras.ops.cast(keras.ops.abs(seen) * 2, "int32") % 5)
    elif isinstance(layer, RECURRENT):
        outputs = layer(keras.layers.Masking()(seen))
    else:
        outputs = layer(seen)
    bent = keras.layers.Activation("tanh")(keras.layers.Flatten()(outputs))
    return keras.layers.GlobalAveragePooling1D()(keras.layers.Reshape((-1, 1))(bent))


def every_layer(members=1, of_model=None, cycle=({},), kinds=tuple(KINDS), **options):
    """Returns a `BayesianModel` in which a row passes through a layer of every kind."""
    keras.utils.set_random_seed(1)
    options = {"bias_initializer": "random_normal", **options}
    inputs = keras.Input((24,))
    numbers = [
        applied(layer_of(kind, members, **options, **own), inputs)
        for kind, own in zip(kinds, itertools.cycle(cycle), strict=False)
    ]
    last = layer_of(layers.DenseVariational, members, **options, **cycle[0])
    outputs = last(keras.layers.Concatenate()(numbers))
    model = tfbbb.BayesianModel(
        inputs,
        keras.layers.GlobalAveragePooling1D()(keras.layers.Reshape((3, 1))(outputs)),
        members=of_model,
    )
    model.likelihood.adapt(Y)
    for layer in model.variational_layers:
        layer.kl_weight.assign(1.0 / len(X))
    optimizer = keras.optimizers.SGD(0.05)
    if keras.config.dtype_policy().name == "mixed_float16":
        # At the scale that Keras begins with, the first gradients overflow.
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=16.0)
    model.compile(optimizer)
    return model


def loss_and_gradients(model, x=X, y=Y):
    """Returns a training step's loss and its gradients by the paths of variables."""
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x, y, model(x, training=True))
    variables = model.trainable_variables
    found = tape.gradient(loss, [variable.value for variable in variables])
    return float(loss), {
        variable.path: None if g is None else tf.convert_to_tensor(g).numpy()
        for variable, g in zip(variables, found, strict=True)
    }
