"""Networks whose tensors lack rows, fold steps into them, draw noise or mix rows."""

import keras
import numpy as np
import pytest

import tfbbb
from tests.posterior_draws import assert_same_moments, brute_force_draws, engine_draws
from tests.prediction.test_graphs import SEQUENCES, X, variational
from tfbbb.layers import DenseVariational, LSTMVariational

ops = keras.ops
LIKELIHOOD = tfbbb.likelihoods.Normal(scale=0.5, standardize=False)


class Code(keras.layers.Layer):
    """A codebook [3, 4], whatever its inputs are."""

    def build(self, shape):
        self.code = self.add_weight(shape=(3, 4), initializer="normal")

    def call(self, inputs):
        return self.code * 1.0

    def compute_output_shape(self, shape):
        return (3, 4)


class Perceiver(keras.Model):
    """A learned query that passes a variational layer attends to the steps."""

    def __init__(self, **options):
        super().__init__()
        self.query, self.value = variational(4, **options), keras.layers.Dense(4)
        self.attention, self.head = keras.layers.Attention(), variational(2, **options)

    def build(self, shape):
        self.latent = self.add_weight(shape=(3, 4), initializer="normal")
        super().build(shape)

    def call(self, inputs):
        query = self.query(ops.expand_dims(self.latent, 0))
        query = ops.broadcast_to(query, (ops.shape(inputs)[0], 3, 4))
        attended = self.attention([query, self.value(inputs)])
        return self.head(ops.mean(attended, axis=1))


class Sampling(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.seed_generator = keras.random.SeedGenerator(3)

    def call(self, inputs):
        noise = keras.random.normal(ops.shape(inputs), seed=self.seed_generator)
        return inputs + noise


class Centred(keras.layers.Layer):
    """Subtracts the mean over the batch."""

    def call(self, inputs):
        return inputs - ops.mean(inputs, axis=0, keepdims=True)


def codebook():
    inputs = keras.Input((4,))
    hidden, code = variational(4, "tanh")(inputs), Code()(inputs)
    differences = ops.expand_dims(hidden, 1) - ops.expand_dims(code, 0)
    distances = ops.sum(differences**2, axis=-1)
    return keras.Model(inputs, distances)


def steps_as_rows():
    inputs = keras.Input((5, 4))
    hidden = variational(3, "tanh")(ops.reshape(inputs, (-1, 4)))
    return keras.Model(inputs, ops.sum(ops.reshape(hidden, (-1, 5, 3)), axis=1))


def mean_over_the_batch():
    inputs = keras.Input((4,))
    return keras.Model(inputs, variational(2)(Centred()(variational(3)(inputs))))


def noise_before():
    inputs = keras.Input((4,))
    return keras.Model(inputs, variational(2)(Sampling()(inputs)))


def masked_encoder():
    steps = keras.Input((5, 4))
    recurrent = LSTMVariational(3, estimator="weight")
    encoder = keras.Model(steps, recurrent(steps))
    inputs = keras.Input((5, 4))
    mask = keras.layers.Lambda(lambda x: x[..., 0] > 0, output_shape=(5,))(inputs)
    return keras.Model(inputs, variational(2)(encoder(inputs, mask=mask)))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("build", "x"),
    [
        (codebook, X),
        (Perceiver, SEQUENCES),
        (steps_as_rows, SEQUENCES),
        (mean_over_the_batch, X),
        (noise_before, X),
        (masked_encoder, SEQUENCES),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_engines_draw_what_ordinary_calls_draw(build, x):
    keras.utils.set_random_seed(0)
    model = build()
    loop = brute_force_draws(model, x, 400)
    assert_same_moments(engine_draws(model, x, "local", 400, compiled=True), loop)


def predictive(model, x, **options):
    return tfbbb.predictive(model, x, likelihood=LIKELIHOOD, **options)


def test_noise_of_other_layers_is_that_of_the_seed():
    model = noise_before()
    first, second, other = (
        predictive(model, X, num_samples=8, seed=seed).mean for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - other).min() > 1e-3


class SumOfSteps(keras.Model):
    """The sum of a layer over steps that are folded into its rows."""

    def __init__(self):
        super().__init__()
        self.layer = DenseVariational(1, use_bias=False, seed=0)

    def call(self, inputs):
        outputs = self.layer(ops.reshape(inputs, (-1, 4)))
        return ops.sum(ops.reshape(outputs, (-1, 5)), axis=1)


def sum_of_steps():
    inputs = keras.Input((5, 4))
    return keras.Model(inputs, SumOfSteps().call(inputs))


@pytest.mark.parametrize("build", [SumOfSteps, sum_of_steps])
def test_steps_in_rows_train_with_shared_weights(build):
    model = build()
    model(SEQUENCES)
    (layer,) = (x for x in model.layers if isinstance(x, DenseVariational))
    draws = brute_force_draws(model, SEQUENCES, 4000)
    variance = SEQUENCES.sum(axis=1) ** 2 @ np.asarray(layer.kernel.variance)[:, 0]
    # The standard error of the variance of a normal is sqrt(2 / S) of it.
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=5 * (2 / 4000) ** 0.5)


def test_probe_leaves_losses_of_a_training_step():
    inputs = keras.Input((4,))
    hidden = DenseVariational(3, kl_weight=1.0, activity_regularizer="l2")(inputs)
    model = keras.Model(inputs, DenseVariational(1, kl_weight=1.0)(ops.tanh(hidden)))
    counts = []
    for _ in range(2):
        model(X, training=True)
        counts.append(len(model.losses))
    assert counts == [3, 3]


def test_rows_that_mix_are_predicted_together():
    model = mean_over_the_batch()
    x = np.random.default_rng(1).normal(size=(60, 4)).astype("float32")
    whole, in_little_memory = (
        predictive(model, x, num_samples=20, method="weight", max_memory_mb=size)
        for size in (512, 0.02)
    )
    np.testing.assert_allclose(in_little_memory.mean, whole.mean, rtol=1e-4, atol=1e-5)


def test_output_without_an_axis_of_rows_is_refused():
    inputs = keras.Input((4,))
    hidden = variational(2)(inputs)
    for lost in (ops.transpose(hidden), ops.sum(hidden, axis=0), hidden[1], hidden[-1]):
        with pytest.raises(ValueError, match="needs the rows as its first axis"):
            predictive(keras.Model(inputs, lost), X)
