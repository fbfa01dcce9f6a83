import keras
import numpy as np
import pytest
import tensorflow as tf

from tfbbb.model.optimizers import IVON

# log p(w) = -N/2 (w - CENTRE)^T CURVATURE (w - CENTRE): curvatures over four decades.
CURVATURE = np.array([100.0, 1.0, 0.1, 0.01], "float32")
CENTRE = np.array([1.0, -2.0, 0.5, 3.0], "float32")
NUM_ROWS = 50.0


def trained(steps, **options):
    variable = keras.Variable(np.zeros(4, "float32"))
    schedule = keras.optimizers.schedules.CosineDecay(0.3, steps)
    optimizer = IVON(schedule, NUM_ROWS, beta_2=1.0 - 10.0 / steps, **options)
    optimizer.build([variable])

    @tf.function
    def descend():
        for _ in tf.range(steps):
            gradient = CURVATURE * (variable.value - CENTRE)
            optimizer.apply([gradient], [variable])

    descend()
    optimizer.finalize_variable_values([variable])
    return variable.numpy(), optimizer.posterior_scale(variable).numpy()


@pytest.mark.few(1)
@pytest.mark.parametrize("initial_hessian", [1.0, 10.0])
def test_variances_on_a_quadratic_are_exact(initial_hessian):
    mean, scale = trained(8000, initial_hessian=initial_hessian)
    expected = 1.0 / np.sqrt(NUM_ROWS * CURVATURE)
    # h averages 800 squares of normals: a standard error of sqrt(2 / 800) / 2 in the
    # scale; its start is forgotten by exp(-10).
    np.testing.assert_allclose(scale, expected, rtol=4 * 0.5 * np.sqrt(2 / 800))
    np.testing.assert_allclose((mean - CENTRE) / expected, 0.0, atol=0.3)


def test_the_prior_adds_to_the_curvature():
    mean, scale = trained(8000, prior_precision=5.0)
    precision = NUM_ROWS * CURVATURE + 5.0
    np.testing.assert_allclose(
        scale, 1.0 / np.sqrt(precision), rtol=4 * 0.5 * np.sqrt(2 / 800)
    )
    expected = NUM_ROWS * CURVATURE * CENTRE / precision
    np.testing.assert_allclose((mean - expected) * np.sqrt(precision), 0, atol=0.3)


def test_variables_hold_draws_until_the_end():
    variable = keras.Variable(np.zeros(4, "float32"))
    optimizer = IVON(1e-6, NUM_ROWS)
    optimizer.build([variable])
    optimizer.apply([tf.zeros(4)], [variable])
    assert np.abs(variable.numpy()).min() > 1e-3
    optimizer.finalize_variable_values([variable])
    np.testing.assert_allclose(variable.numpy(), 0.0, atol=1e-7)


def test_a_compiled_network_learns_and_its_optimizer_is_saved(tmp_path):
    random = np.random.default_rng(0)
    x = random.normal(size=(64, 3)).astype("float32")
    y = x @ [1.0, -2.0, 0.5]
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    network.compile(IVON(0.3, 64.0, prior_precision=0.01, clip_radius=10.0), "mse")
    # In one epoch: those of four steps take mostly Keras' own time.
    network.fit(np.tile(x, (40, 1)), np.tile(y, 40), batch_size=16, verbose=0)
    kernel = network.trainable_variables[0]
    np.testing.assert_allclose(kernel.numpy()[:, 0], [1.0, -2.0, 0.5], atol=0.1)
    scale = network.optimizer.posterior_scale(kernel)
    network.save(tmp_path / "network.keras")
    loaded = keras.models.load_model(tmp_path / "network.keras")
    assert loaded.optimizer.get_config() == network.optimizer.get_config()
    kept = loaded.optimizer.posterior_scale(loaded.trainable_variables[0])
    np.testing.assert_array_equal(kept, scale)
