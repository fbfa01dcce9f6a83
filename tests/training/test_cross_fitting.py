import keras
import numpy as np
import pytest

import tfbbb
from tfbbb.model.training_rows import TrainingRows
from tfbbb.training.cross_fitting import MemberRows

ROWS = 30


def draw(repeats=2, temperatures=(1.0, 0.1), group_size=6, **options):
    return MemberRows.draw(ROWS, temperatures, group_size, repeats, **options)


def test_each_row_is_left_out_once_per_temperature_and_repeat():
    members = draw()
    assert members.weights.shape == (ROWS, 12)
    np.testing.assert_array_equal((members.weights == 0).sum(axis=1), 4)
    np.testing.assert_array_equal(members.sizes, 20)
    np.testing.assert_array_equal(members.weights[:, :6], members.weights[:, 6:])
    np.testing.assert_allclose(members.relative_temperatures, [1.0] * 6 + [0.1] * 6)


def test_classes_are_spread_over_the_folds():
    classes = np.repeat([0, 1], [24, 6])
    for folds in draw(classes=classes).folds:
        for fold in range(3):
            assert np.sum((folds == fold) & (classes == 1)) == 2


def test_no_group_of_rows_is_divided():
    groups = np.repeat(np.arange(8), [9, 6, 5, 4, 2, 2, 1, 1])
    members = draw(groups=groups)
    for folds in members.folds:
        for group in range(8):
            assert len(set(folds[groups == group])) == 1
        np.testing.assert_array_equal(np.bincount(folds), 10)
    assert np.any(members.folds[0] != members.folds[1])


def test_every_second_member_leaves_out_the_last_rows():
    last = np.arange(ROWS) % 5 == 0
    members = draw(last=last)
    assert members.weights[~last].all()
    np.testing.assert_array_equal(members.weights[last], [[0, 1] * 6] * last.sum())
    np.testing.assert_array_equal(members.left_out, np.flatnonzero(last))
    np.testing.assert_array_equal(members.measuring.weights, members.weights[last])
    (folds,) = draw(last=last, repeats=1, group_size=3).folds
    np.testing.assert_array_equal(folds, np.where(last, 0, -1))


def test_without_repeats_all_members_have_all_rows():
    members = draw(repeats=0, temperatures=(1.0,))
    assert members.weights is members.sizes is members.relative_temperatures is None


def linear_model(members, prior=None, **options):
    inputs = keras.Input((2,))
    layer = tfbbb.layers.DenseVariational(
        1, kernel_initializer="zeros", prior=prior or "normal", seed=3
    )
    likelihood = tfbbb.likelihoods.Normal(scale=0.5, standardize=False)
    return tfbbb.BayesianModel(
        inputs, layer(inputs), likelihood=likelihood, members=members, **options
    )


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, 2)).astype(np.float32)
    y = x @ [[1.0], [-0.5]] + 0.5 * generator.normal(size=(ROWS, 1))
    return x, y.astype(np.float32)


@pytest.mark.parametrize("groups", [None, np.minimum(np.arange(ROWS), 15)])
def test_out_of_sample_outputs_are_those_of_members_that_left_out_the_row(data, groups):
    """Each member is a constant, its number, so outputs tell who predicted."""
    x, _ = data
    members = draw(groups=groups)
    model = linear_model(members.num_members)
    (layer,) = model.variational_layers
    for weight in layer.variational_weights:
        weight.variables["log_scale"].assign(
            np.full(weight.variables["log_scale"].shape, -30.0)
        )
    layer.kernel.variables["mean"].assign(np.zeros((12, 2, 1)))
    layer.bias.variables["mean"].assign(np.arange(12.0)[:, np.newaxis])
    outputs = members.out_of_sample_outputs(model, x, ROWS, draws=3)
    assert outputs.shape[:3] == (2, ROWS, 6)
    for row in range(ROWS):
        left_out = np.flatnonzero(members.weights[row] == 0)
        found = outputs[:, row, :, 0].reshape(2, 2, 3)
        np.testing.assert_allclose(found[..., 0].ravel(), left_out, atol=1e-5)
        np.testing.assert_allclose(found[..., 0], found[..., 2], atol=1e-5)


def test_held_out_rows_are_predicted_by_all_members(data):
    x, _ = data
    members = draw(repeats=0)
    outputs = members.out_of_sample_outputs(linear_model(12), x[:7], 7, draws=2)
    assert outputs.shape[:3] == (2, 7, 12)


def test_gradient_of_each_member_is_that_of_training_alone(data):
    """Member k: (1/N_k) sum over its rows of nll + (T_k / N_k) KL."""
    import tensorflow as tf

    x, y = data
    members = draw()
    model = linear_model(12)
    model.compile("adam")
    (layer,) = model.variational_layers
    generator = np.random.default_rng(1)
    means = generator.normal(size=(12, 2, 1))
    layer.kernel.variables["mean"].assign(means)
    scale = 1e-4  # no noise to speak of
    for weight in layer.variational_weights:
        variable = weight.variables["log_scale"]
        variable.assign(np.full(variable.shape, np.log(scale)))
    rows = TrainingRows(
        y,
        ROWS,
        member_sizes=members.sizes,
        member_temperatures=members.relative_temperatures,
    )
    kernel = layer.kernel.variables["mean"]
    with model.training_on(rows), tf.GradientTape() as tape:
        outputs = model(x, training=True)
        loss = model.compute_loss(x, y, outputs, members.weights)
    found = np.asarray(tape.gradient(loss, kernel.value))
    for member in range(12):
        used = members.weights[:, member] == 1
        residuals = x[used] @ means[member] - y[used]
        of_rows = x[used].T @ residuals / 0.5**2 / used.sum()
        # The prior of the kernel has the variance 1 / fan-in, 1/2.
        temperature = members.relative_temperatures[member]
        of_prior = temperature / used.sum() * means[member] / 0.5
        np.testing.assert_allclose(
            found[member], of_rows + of_prior, rtol=5e-3, atol=2e-3
        )
