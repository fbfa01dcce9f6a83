"""Our layers beside those of TensorFlow Probability, in one process.

With the same weights and the same global seed both draw the same noise, so that even
samples are equal to float rounding.
"""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
import tf_keras

import tfbbb.lab.compat.tfp_layers as ours

theirs = tfp.layers
tfd = tfp.distributions

LEFT_OUT = {
    "AutoregressiveTransform",
    "BlockwiseInitializer",
    "CategoricalMixtureOfOneHotCategorical",
    "VariationalGaussianProcess",
    "WeightNorm",
    "default_loc_scale_fn",
}
NAMES = [
    name
    for name in dir(theirs)
    if not name.startswith("_")
    and not inspect.ismodule(getattr(theirs, name))
    and name not in LEFT_OUT
]
ROUNDING = {"rtol": 2e-5, "atol": 2e-6}


@pytest.mark.parametrize("name", NAMES)
def test_names_and_arguments_are_those_of_tfp(name):
    assert name in ours.__all__
    our, their = getattr(ours, name), getattr(theirs, name)
    for method in ("", "new", "params_size"):
        if hasattr(their, method or "__call__"):
            taken, expected = (
                inspect.signature(getattr(cls, method) if method else cls).parameters
                for cls in (our, their)
            )
            assert [n for n in taken if n in expected] == [
                n for n in expected if n in taken
            ]
            assert expected.keys() - taken.keys() <= {"name"}


def with_equal_weights(our, their, inputs, scale=0.3):
    """Builds both layers and gives them the same random weights, in order."""
    our(inputs), their(inputs)
    rng = np.random.default_rng(5)
    for w, v in zip(our.weights, their.weights, strict=True):
        assert tuple(w.shape) == tuple(v.shape)
        assert w.name == v.name.split("/")[-1].split(":")[0]
        value = rng.normal(size=w.shape, scale=scale)
        w.assign(value)
        v.assign(value)


def assert_equal_calls(our, their, inputs):
    """One call of both with the same seed: outputs and losses."""
    results = []
    for layer in (our, their):
        tf.random.set_seed(3)
        outputs = tf.convert_to_tensor(layer(inputs))
        results.append((outputs, [tf.convert_to_tensor(v) for v in layer.losses]))
    (our_outputs, our_losses), (their_outputs, their_losses) = results
    np.testing.assert_allclose(our_outputs, their_outputs, **ROUNDING)
    assert len(our_losses) == len(their_losses) > 0
    np.testing.assert_allclose(our_losses, their_losses, rtol=1e-5)


DENSE = ["DenseReparameterization", "DenseLocalReparameterization", "DenseFlipout"]
CONVOLUTIONS = [
    f"Convolution{rank}D{estimator}"
    for rank in (1, 2, 3)
    for estimator in ("Flipout", "Reparameterization")
]


def normal_bias(module):
    return {
        "bias_posterior_fn": module.default_mean_field_normal_fn(),
        "bias_prior_fn": module.default_multivariate_normal_fn,
        "kernel_divergence_fn": lambda q, p, ignore: tfd.kl_divergence(q, p) / 10,
        "activation": "tanh",
    }


@pytest.mark.parametrize("options", [lambda module: {}, normal_bias])
@pytest.mark.parametrize("name", DENSE)
def test_dense_layers_draw_the_same(name, options):
    inputs = tf.random.normal([6, 5], seed=1)
    our, their = (getattr(m, name)(4, **options(m)) for m in (ours, theirs))
    with_equal_weights(our, their, inputs)
    assert_equal_calls(our, their, inputs)
    for which in ("kernel_posterior", "kernel_prior", "bias_posterior"):
        q, p = getattr(our, which), getattr(their, which)
        np.testing.assert_allclose(q.mean(), p.mean(), **ROUNDING)
        np.testing.assert_allclose(q.stddev(), p.stddev(), **ROUNDING)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_draw_the_same(name):
    rank = int(name[len("Convolution")])
    options = {"strides": 2, "padding": "SAME"} if rank == 2 else {}
    inputs = tf.random.normal([2, *[6] * rank, 3], seed=1)
    our, their = (
        getattr(m, name)(4, 3, activation="relu", **options) for m in (ours, theirs)
    )
    with_equal_weights(our, their, inputs)
    assert_equal_calls(our, their, inputs)
    shape = our.compute_output_shape(inputs.shape)
    assert tuple(shape) == tuple(their.compute_output_shape(inputs.shape))


def joint_posterior(layers, sequential):
    def make(kernel_size, bias_size=0, dtype=None):
        n = kernel_size + bias_size
        size = layers.MultivariateNormalTriL.params_size(n)
        return sequential(
            [layers.VariableLayer(size, dtype=dtype), layers.MultivariateNormalTriL(n)]
        )

    return make


def trained_prior(layers, sequential, trainable):
    def make(kernel_size, bias_size=0, dtype=None):
        n = kernel_size + bias_size
        return sequential(
            [
                layers.VariableLayer(n, dtype=dtype, trainable=trainable),
                layers.DistributionLambda(
                    lambda t: tfd.Independent(
                        tfd.Normal(loc=t, scale=1), reinterpreted_batch_ndims=1
                    )
                ),
            ]
        )

    return make


@pytest.mark.parametrize(
    ("kl_weight", "kl_use_exact", "trainable"),
    [(None, True, True), (0.25, False, True), (None, False, False)],
)
def test_dense_variational_draws_the_same(kl_weight, kl_use_exact, trainable):
    inputs = tf.random.normal([6, 3], seed=1)
    our, their = (
        m.DenseVariational(
            2,
            joint_posterior(m, sequential),
            # Between a full covariance and independence there is no closed form.
            joint_posterior(m, sequential)
            if kl_use_exact
            else trained_prior(m, sequential, trainable),
            kl_weight,
            kl_use_exact,
            "relu",
        )
        for m, sequential in ((ours, keras.Sequential), (theirs, tf_keras.Sequential))
    )
    with_equal_weights(our, their, inputs)
    assert_equal_calls(our, their, inputs)
    assert len(our.trainable_weights) == len(their.trainable_weights)


def network(library, layers):
    """A network with a model in it, a normalisation, and three kinds of posterior."""
    make = joint_posterior(layers, library.Sequential)
    return library.Sequential(
        [
            layers.Convolution2DFlipout(2, 3),
            library.layers.BatchNormalization(),
            library.layers.Flatten(),
            library.layers.Dense(3),
            library.Sequential([library.layers.Dense(3), layers.DenseFlipout(4)]),
            layers.DenseVariational(2, make, make),
            layers.DenseReparameterization(4),
        ]
    )


def test_a_network_takes_the_weights_of_a_legacy_one():
    inputs = tf.random.normal([2, 5, 5, 1], seed=1)
    our, their = network(keras, ours), network(tf_keras, theirs)
    our(inputs), their(inputs)
    rng = np.random.default_rng(1)
    for weight in their.weights:
        weight.assign(rng.uniform(0.1, 1.0, size=weight.shape))
    our.set_weights(their.get_weights())
    outputs = []
    for model in (our, their):
        tf.random.set_seed(5)
        outputs.append(tf.convert_to_tensor(model(inputs)))
    # The same weights and noise: only rounding differs.
    np.testing.assert_allclose(*outputs, rtol=1e-4, atol=1e-5)


PARAMETRIC = {
    "IndependentBernoulli": ((2, 2),),
    "IndependentLogistic": ((3,),),
    "IndependentNormal": ([2, 3],),
    "IndependentPoisson": (2,),
    "MixtureLogistic": (3, [2]),
    "MixtureNormal": (3, ()),
    "MultivariateNormalTriL": (3,),
    "OneHotCategorical": (4,),
}


@pytest.mark.few(16)
@pytest.mark.parametrize("conversion", ["sample", "mean", "mode", "stddev", "variance"])
@pytest.mark.parametrize("name", PARAMETRIC)
def test_distribution_layers_make_the_same_distribution(name, conversion):
    arguments = PARAMETRIC[name]
    our_class, their_class = getattr(ours, name), getattr(theirs, name)
    size = our_class.params_size(*arguments)
    assert size == their_class.params_size(*arguments)
    assert isinstance(size, int)
    params = tf.random.normal([7, size], seed=2)
    results = []
    for cls, function in (
        (our_class, conversion),
        # Of this class, TFP takes no names.
        (their_class, getattr(tfd.Distribution, conversion)),
    ):
        layer = cls(*arguments, convert_to_tensor_fn=function)
        tf.random.set_seed(7)
        try:
            d = layer(params)
        except NotImplementedError:
            results.append(None)
            continue
        results.append((d, tf.convert_to_tensor(d)))
    if None in results:
        assert results == [None, None]
        return
    (a, our_value), (b, their_value) = results
    assert our_value.dtype == their_value.dtype == a.dtype
    if conversion != "sample" or "Mixture" not in name:
        # TFP's mixtures draw from their components, too, and drop these draws.
        np.testing.assert_allclose(our_value, their_value, **ROUNDING)
    assert a.shape == our_value.shape
    assert a.batch_shape == b.batch_shape
    assert a.event_shape == b.event_shape
    y = b.sample(seed=4)
    np.testing.assert_allclose(a.log_prob(y), b.log_prob(y), **ROUNDING)


DIVERGENCES = {
    "estimated": {},
    "exact": {"use_exact_kl": True},
    "weighted": {"use_exact_kl": True, "weight": 3.0},
    "averaged_over_points": {
        "test_points_fn": lambda d: d.sample(5, seed=1),
        "test_points_reduce_axis": 0,
    },
}


@pytest.mark.parametrize("options", DIVERGENCES.values(), ids=DIVERGENCES)
@pytest.mark.parametrize("kind", ["KLDivergenceRegularizer", "KLDivergenceAddLoss"])
def test_divergences_from_a_prior_are_the_same(kind, options):
    prior = tfd.MultivariateNormalDiag(tf.zeros(2), [1.0, 2.0])
    params = tf.random.normal([7, 5], seed=2)
    losses = []
    for module in (ours, theirs):
        penalty = getattr(module, kind)(prior, **options)
        regularizer = penalty if kind == "KLDivergenceRegularizer" else None
        layer = module.MultivariateNormalTriL(2, activity_regularizer=regularizer)
        tf.random.set_seed(4)
        d = layer(params)
        if regularizer is None:
            d = penalty(d)
            assert isinstance(d, tfd.Distribution)
        losses.append(layer.losses if regularizer else penalty.losses)
    (our_loss,), (their_loss, *again) = losses
    np.testing.assert_allclose(our_loss, their_loss, rtol=1e-5)
    # TFP's layers have two outputs for legacy Keras, the distribution and its tensor,
    # and it penalises both.
    assert len(again) == (kind == "KLDivergenceRegularizer")
