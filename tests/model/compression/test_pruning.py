import keras
import numpy as np
import pytest
import tensorflow as tf

import tfbbb
from tfbbb.layers import DenseVariational
from tfbbb.model.compression import prune, share_removed
from tfbbb.model.compression.pruning import RANKINGS

X = np.random.default_rng(0).normal(size=(60, 3)).astype("float32")
Y = X[:, :1] - X[:, 1:2] ** 2


def scramble(model, seed=1):
    """Gives every weight another mean and deviation."""
    generator = np.random.default_rng(seed)
    for weight in all_weights(model):
        shape = weight.variables["mean"].shape
        weight.variables["mean"].assign(generator.normal(size=shape))
        weight.variables["log_scale"].assign(generator.normal(-1.0, 1.0, size=shape))
    return model


def all_weights(model):
    return [
        w for layer in model.layers for w in getattr(layer, "variational_weights", [])
    ]


def sequential(**options):
    layers = [DenseVariational(7, "tanh", **options), DenseVariational(1, **options)]
    return scramble(keras.Sequential([keras.Input((3,)), *layers]))


@pytest.fixture(scope="module")
def trained():
    """A model that tests share and so leave as it is."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    hidden = DenseVariational(8, "tanh")(inputs)
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(hidden))
    model.compile(keras.optimizers.Adam(0.05))
    model.fit(X, Y, epochs=2, verbose=0)
    return model


def flat(model, values):
    return np.concatenate([np.ravel(values(w)) for w in all_weights(model)])


def means(model):
    return flat(model, lambda weight: weight.mean)


def ratios(model):
    return flat(model, lambda weight: np.abs(weight.mean) / weight.stddev)


@pytest.mark.parametrize(
    ("name", "share"),
    [("signal_to_noise", 0.0), ("density_ratio", 0.3), ("signal_to_noise", 1.0)],
)
def test_removes_the_least_important_weights(name, share):
    model = sequential()
    every = ratios(model)
    number = int(share * len(every))
    first = sorted(range(len(every)), key=lambda i: every[i])[:number]
    pruned = prune(model, share, ranking=name)
    expected = means(model)
    expected[first] = 0.0
    np.testing.assert_array_equal(means(pruned), expected)
    variances = flat(pruned, lambda weight: weight.variance)
    np.testing.assert_array_equal(np.flatnonzero(variances == 0.0), sorted(first))
    assert share_removed(pruned) == number / len(every)


def test_density_ratio_compares_the_posterior_at_mean_and_0():
    model = sequential()
    for weight in all_weights(model):
        log_ratio = -RANKINGS["density_ratio"](weight).sum()
        exact = weight.log_prob(tf.zeros(weight.shape)) - weight.log_prob(weight.mean)
        np.testing.assert_allclose(log_ratio, exact, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "threshold", "limit"),
    [
        ("signal_to_noise", 1.5, 1.5),
        # Graves' q(0) / q(mean) > 0.5.
        ("density_ratio", -np.log(0.5), np.sqrt(-2 * np.log(0.5))),
    ],
)
def test_a_threshold_removes_the_weights_below_it(name, threshold, limit):
    model = sequential()
    pruned = prune(model, threshold=threshold, ranking=name)
    np.testing.assert_array_equal(means(pruned) == 0.0, ratios(model) < limit)


def test_members_are_pruned_together():
    model = sequential(members=2)
    pruned = prune(model, 0.5)
    removed = means(pruned) == 0.0
    assert removed.sum() == len(removed) // 2
    assert ratios(model)[removed].max() < ratios(model)[~removed].min()


def test_prune_copies_the_model_and_leaves_it_unchanged(trained):
    before = [np.array(w) for w in trained.get_weights()]
    pruned = prune(trained, 0.5)
    for mine, old in zip(trained.get_weights(), before, strict=True):
        np.testing.assert_array_equal(mine, old)
    assert isinstance(pruned, tfbbb.BayesianModel)
    assert pruned.num_rows == 60
    assert np.isfinite(pruned.evaluate(X, Y, verbose=0)).all()


def test_removed_weights_add_nothing_to_a_prediction_or_its_variance(trained):
    model = prune(trained, 1.0)
    for method in ("local", "weight"):
        prediction = model.predictive(X, method=method)
        np.testing.assert_allclose(prediction.epistemic, 0.0, atol=1e-12)
        np.testing.assert_allclose(
            prediction.mean, np.full((60, 1), Y.mean()), rtol=1e-5
        )


class Subclassed(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.first = keras.Sequential([DenseVariational(7, "tanh")])
        self.second = DenseVariational(1)

    def call(self, x):
        return self.second(self.first(x))


def test_nested_and_subclassed_models_are_pruned_completely():
    model = Subclassed()
    model(X)
    pruned = prune(model, 0.5)
    assert share_removed(pruned) == 18 / 36
    assert share_removed(model) == 0.0
    # The biases begin at exactly 0, so they are the first to go.
    assert not np.any(pruned.first.layers[0].bias.variance)


class Odd(tfbbb.posteriors.MeanFieldNormal):
    """A family whose weights are not independent."""

    factorised = False


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: prune(sequential()), "share=None, threshold=None"),
        (lambda: prune(sequential(), 0.5, threshold=1.0), "share=0.5, threshold=1.0"),
        (lambda: prune(sequential(), 1.5), "share=1.5"),
        (lambda: prune(sequential(), float("nan")), "share=nan"),
        (lambda: prune(sequential(), "half"), "share='half'"),
        (lambda: prune(sequential(), True), "share=True"),
        (lambda: prune(sequential(), threshold=-1.0), "threshold=-1.0"),
        (lambda: prune(sequential(), threshold="low"), "threshold='low'"),
        (lambda: prune("model", 0.5), "model='model'"),
        (lambda: prune(sequential(), 0.5, ranking="size"), "ranking='size'"),
        (
            lambda: prune(keras.Sequential([keras.Input((3,))], name="bare"), 0.5),
            "bare",
        ),
        (
            lambda: prune(sequential(posterior=Odd(), estimator="weight"), 0.5),
            r"kernel with posterior=Odd\(",
        ),
    ],
)
def test_invalid_arguments_are_refused(act, message):
    with pytest.raises(ValueError, match=f"Received: .*{message}"):
        act()
