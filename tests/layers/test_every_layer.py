"""What is true of every layer, whatever its kind."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from keras.src import testing

from tests.every_layer import (
    ALMOST_A_POINT,
    FEW_KINDS,
    KINDS,
    RECURRENT,
    X,
    Y,
    applied,
    every_layer,
    layer_of,
    loss_and_gradients,
)
from tests.keras_twins import weights_of
from tfbbb import estimators, layers, posteriors, priors
from tfbbb.base import noise
from tfbbb.base.private_apis import sublayers
from tfbbb.layers import VariationalLayer

# Arguments of Keras' layers that have no meaning where the kernel is not a number: what
# quantizes it, what adds to it or is its value, and the kernels of cuDNN.
WITHOUT_MEANING = {
    "gptq_unpacked_column_size",
    "lora_alpha",
    "lora_rank",
    "quantization_config",
    "use_cudnn",
    "weights",
}
COIN = posteriors.TFPDistribution(tfp.distributions.Bernoulli, {"logits": 0.5})
FAMILIES = [*posteriors.names(), posteriors.TFPDistribution(tfp.distributions.Laplace)]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
every_family = pytest.mark.parametrize("family", FAMILIES, ids=str)


@keras.saving.register_keras_serializable(package="tests")
def _coin(shape, fan_in):
    return tfp.distributions.Bernoulli(np.zeros(shape, "float32"), dtype="float32")


def of_family(family):
    return {"posterior": family, "bias_posterior": family}


# What a layer does for its estimator is common to all kinds but the linear operation.
ESTIMATORS = [
    {"estimator": "local"},
    {"estimator": estimators.Weight(2), "prior": "scale_mixture_normal"},
    {"estimator": estimators.Flipout(2)},
]


def keras_layer(kind):
    return getattr(keras.layers, kind.__name__.removesuffix("Variational"))


def test_every_layer_is_among_them():
    others = {"Exposure", "VariationalLayer"}
    assert {kind.__name__ for kind in KINDS} == {*layers.__all__} - others


class KerasContractTest(testing.TestCase):
    def test_every_kind_meets_the_contract_of_a_keras_layer(self):
        for kind, (arguments, options, shape) in KINDS.items():
            names = inspect.signature(kind).parameters
            given = {**dict(zip(names, arguments, strict=False)), **options}
            shapes = [(2, *shape)]
            if kind is layers.MultiHeadAttentionVariational:
                shapes *= 2
            layer = layer_of(kind)
            layer.build(*shapes)
            parts = sum(isinstance(x, VariationalLayer) for x in sublayers(layer))
            self.run_layer_test(
                kind,
                init_kwargs={**given, "kl_weight": 0.1},
                input_shape=shapes[0]
                if len(shapes) == 1
                else {"query_shape": shapes[0], "value_shape": shapes[1]},
                input_dtype="int32" if kind is layers.EmbeddingVariational else None,
                expected_output_shape=layer.compute_output_shape(*shapes),
                # Mean and standard deviation of each.
                expected_num_trainable_weights=2 * len(weights_of(layer)),
                expected_num_non_trainable_weights=parts,
                expected_num_seed_generators=parts,
                expected_num_losses=parts,
                supports_masking=keras_layer(kind)(**given).supports_masking,
                run_training_check=False,
            )


@every_kind
def test_is_the_layer_of_keras_with_its_arguments(kind):
    assert issubclass(kind, keras_layer(kind))
    # One number stands for as many as there are dimensions.
    alike = {(1, 1): 1, (1, 1, 1): 1}
    expected = {
        name: alike.get(parameter.default, parameter.default)
        for name, parameter in inspect.signature(keras_layer(kind)).parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        and name not in WITHOUT_MEANING
    }
    parameters = inspect.signature(kind).parameters
    found = {
        name: alike.get(parameters[name].default, parameters[name].default)
        for name in expected
    }
    assert found == expected
    # Those that say what a layer computes are positional, in the order of Keras.
    positional = [
        name
        for name, parameter in parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    assert positional == list(expected)[: len(positional)]
    assert expected.keys() & {"activation", "use_bias"} <= set(positional)


STRATEGIES = {
    "posterior": posteriors.MeanFieldNormal(0.3),
    "prior": priors.Laplace(0.7),
    "bias_posterior": posteriors.LowRankNormal(3),
    "bias_prior": priors.StudentT(5.0),
    "estimator": estimators.Weight(3),
}
OTHER_VALUES = {
    "regularizer": "l2",
    "constraint": "non_neg",
    "initializer": "he_uniform",
    "activation": "softsign",
    "dropout": 0.2,
    "seed": 3,
    "weight": 0.25,
}


def other_value(name, default):
    """Returns another value of an argument than its default, None if it has none."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    return (
        not default
        if isinstance(default, bool)
        else OTHER_VALUES.get(name.rpartition("_")[2])
    )


@every_kind
def test_configs_restore_every_argument(kind):
    arguments, own, _ = KINDS[kind]
    given = {
        name: value
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.default is not parameter.empty and name not in own
        if (value := other_value(name, parameter.default)) is not None
    }
    config = kind(*arguments, **own, **given).get_config()
    usual = kind(*arguments, **own).get_config()
    assert kind.from_config(config).get_config() == config
    assert not [name for name in given if config[name] == usual.get(name)]


@pytest.mark.parametrize("kind", [*FEW_KINDS, layers.LSTMVariational])
@every_family
def test_impossible_estimators_are_refused_at_construction(kind, family):
    q = posteriors.get(family)
    for name, needs in (("local", q.factorised), ("flipout", q.factorised)):
        # Another class than that of the table: recurrent layers refuse `local`.
        possible = needs and not (name == "local" and kind in RECURRENT)
        arguments, options, _ = KINDS[kind]
        options = {**options, **of_family(family), "estimator": name}
        if possible:
            kind(*arguments, **options)
        else:
            works = r"Use one of 'auto'.*'weight'.*Received: estimator="
            with pytest.raises(ValueError, match=works):
                kind(*arguments, **options)


@every_kind
def test_posteriors_that_no_estimator_serves_together_are_refused(kind):
    if kind is layers.EmbeddingVariational:
        return
    for estimator in ("auto", "score_function"):
        with pytest.raises(ValueError, match=r"No estimator can train.*Bernoulli"):
            layer_of(kind, posterior=COIN, bias_posterior="point", estimator=estimator)


@every_kind
def test_weights_without_a_gradient_are_trained_by_the_score_function(kind):
    layer = layer_of(kind, **of_family(COIN), prior=priors.get(_coin))
    for each in sublayers(layer):
        if isinstance(each, VariationalLayer):
            assert each.estimator == estimators.ScoreFunction()
    assert layer.get_config()["estimator"]["class_name"] == "ScoreFunction"


@pytest.mark.few(5)
@every_kind
def test_a_shared_layer_draws_and_counts_once(kind):
    layer = layer_of(kind, estimator="weight", kl_weight=0.1)
    left, right = keras.Input((24,)), keras.Input((24,))
    model = keras.Model([left, right], applied(layer, left) - applied(layer, right))
    np.testing.assert_allclose(model([X, X]), 0.0, atol=1e-6)
    parts = [x for x in sublayers(layer) if isinstance(x, VariationalLayer)]
    assert len(model.losses) == len(parts)
    divergence = sum(part.step_kl for part in parts)
    np.testing.assert_allclose(sum(model.losses), 0.1 * divergence, rtol=1e-6)


@every_kind
def test_penalties_of_weights_that_have_members_are_refused_at_construction(kind):
    penalties = {
        name: "l2"
        for name in inspect.signature(kind).parameters
        if name.endswith("_regularizer") and name != "activity_regularizer"
    }
    arguments, options, _ = KINDS[kind]
    with pytest.raises(ValueError, match=r"support members.*members=2.*regularizer"):
        kind(*arguments, **options, members=2, **penalties)
    layer = kind(*arguments, **options, activity_regularizer="l2", **penalties)
    inner = [x for x in sublayers(layer) if isinstance(x, VariationalLayer)]
    for each in inner:
        with pytest.raises(ValueError, match="do not support members"):
            each.set_members(2)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("estimator", "members"),
    [("score_function", 2), ("local", 1), ("flipout", 1), ("weight", 1)],
)
def test_every_estimator_gives_every_layer_a_gradient(estimator, members):
    model = every_layer(members, estimator=estimator)
    assert_gradients(model)


def test_auto_trains_every_layer_and_every_posterior():
    # Each kind of layer has one of them, in turn.
    model = every_layer(cycle=[of_family(each) for each in FAMILIES])
    assert_gradients(model)
    before = [np.asarray(weight.mean) for weight in weights_of(model)]
    model.run_eagerly = True
    model.train_on_batch(X, Y)
    for weight, mean in zip(weights_of(model), before, strict=True):
        assert np.isfinite(weight.mean).all(), weight.name
        assert np.any(weight.mean != mean), weight.name


def assert_gradients(model):
    """Checks that no gradient is missing or infinite, and none of a weight all 0."""
    loss, gradients = loss_and_gradients(model)
    assert np.isfinite(loss)
    for path, gradient in gradients.items():
        assert gradient is not None, path
        assert np.isfinite(gradient).all(), path
    for weight in weights_of(model):
        paths = [variable.path for variable in weight.variables.values()]
        assert any(np.any(gradients[path] != 0) for path in paths), paths


@pytest.fixture
def noise_of_its_place(monkeypatch):
    """Noise that is the same for every member, draw and row, and for every seed."""

    def same(numbers):
        def noise_like(seed, shape, dtype=tf.float32):
            return tf.fill(shape, tf.cast(numbers, dtype))

        return noise_like

    monkeypatch.setattr(noise, "normal", same(0.7))
    monkeypatch.setattr(noise, "signs", same(-1.0))


def spread(model):
    """Gives all members parameters of their own."""
    generator = np.random.default_rng(2)
    for variable in model.trainable_variables:
        moved = 0.1 * generator.normal(size=variable.shape)
        variable.assign(variable.numpy() + moved)


@pytest.mark.parametrize(
    ("kinds", "cycle"),
    [
        (FEW_KINDS, ESTIMATORS),
        # Each kind of layer has one of them, in turn.
        pytest.param(
            tuple(KINDS),
            [*map(of_family, FAMILIES), *ESTIMATORS],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["few", "all"],
)
def test_gradients_of_members_are_those_of_each_alone(kinds, cycle, noise_of_its_place):
    model = every_layer(of_model=2, kinds=kinds, cycle=cycle)
    spread(model)
    _, together = loss_and_gradients(model)
    for index, member in enumerate(model.members):
        _, alone = loss_and_gradients(member)
        assert len(alone) == len(together)
        for (path, one), both in zip(alone.items(), together.values(), strict=True):
            assert both.shape == (2, *one.shape)
            np.testing.assert_allclose(
                both[index],
                one,
                rtol=2e-3,
                atol=1e-5 + 1e-4 * np.abs(one).max(initial=0.0),
                err_msg=path,
            )


@pytest.fixture(scope="module")
def ensemble():
    """A model of two members that differ, whose draws do not."""
    model = every_layer(of_model=2, **of_family(ALMOST_A_POINT))
    spread(model)
    return model


# Engines and exports run the graph of a model, of which every kind is one operation.
@pytest.mark.slow
def test_members_of_all_layers_are_exported(ensemble, tmp_path):
    for weight in weights_of(ensemble):
        log_scale = weight.variables["log_scale"]
        log_scale.assign(tf.fill(log_scale.shape, -1.0))
    ensemble.export_predictive(tmp_path / "1")
    served = tf.saved_model.load(tmp_path / "1").signatures["predict"](
        inputs=tf.constant(X), num_samples=tf.constant(20), seed=tf.constant(5)
    )
    live = ensemble.predictive(X, num_samples=20, method="local", seed=5)
    assert live.epistemic.min() > 1e-3
    for name in ("mean", "epistemic"):
        np.testing.assert_allclose(served[name], getattr(live, name), rtol=1e-4)


def test_members_of_all_layers_are_saved_and_cloned(ensemble, tmp_path):
    model = ensemble
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    clone = keras.models.clone_model(model)
    for twin in (loaded, clone):
        for mine, other in zip(model.layers, twin.layers, strict=True):
            if type(mine) in KINDS:
                assert mine.get_config() == other.get_config()
    for mine, other in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(mine, other, err_msg=mine.path)
