"""Training on all devices: on two logical CPUs, in a process of their own."""

from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import count
from multiprocessing import get_context

import numpy as np
import pytest

from tfbbb.tables import samples

SPEC = {
    "target": "progression",
    "model": {"hidden_units": [8], "members": 2, "likelihood": "normal"},
    "training": {
        "epochs": 2,
        "validation": {"fraction": 0.3},
        "kl_schedule": "constant",
        "devices": "all",
    },
}


@cache
def two_devices():
    """Returns a strategy of two logical CPUs, in a process of its own."""
    import tensorflow as tf

    (device,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        device, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    from tfbbb.training.devices import training_strategy

    return training_strategy("all")


class Rows:
    """41 rows: in the last batch of 20, one replica has a row and one has none."""

    num_rows = 41
    sha256 = ""

    def targets(self):
        from tests.ensembles import Y

        return np.concatenate([Y, Y[:1]])

    def batches(self, batch_size, *, seed, epoch=0, batch=0):
        import tensorflow as tf

        from tests.ensembles import X

        rows = tf.data.Dataset.from_tensor_slices(
            (np.concatenate([X, X[:1]]), self.targets())
        )
        return rows.batch(batch_size).repeat().skip(batch)


def without_noise(devices, folder=None, executions=None):
    """Returns the losses and the variables of a training on one device or all."""
    two_devices()
    from tests.ensembles import X, Y, network
    from tfbbb.model.optimizers import Adam
    from tfbbb.training.devices import training_strategy
    from tfbbb.training.loop import fit

    with training_strategy(devices).scope():
        model = network(2, "weight")
        model.compile(Adam(0.05))
    asked = count()
    outcome = fit(
        model,
        Rows(),
        epochs=4,
        batch_size=20,
        held_out=(X[:9], Y[:9]),
        checkpoint_directory=folder,
        should_stop=lambda: next(asked) == executions,
    )
    return outcome.losses, [v.numpy() for v in model.trainable_variables]


def resumed(first, then, folder):
    """Returns the same of a training that changed its devices after an epoch."""
    from tfbbb.training.progress import Interrupted

    # On two devices an execution is a step.
    executions = 1 if first == "one" else 3
    with pytest.raises(Interrupted, match="stopped after 3 of 12 steps"):
        without_noise(first, folder, executions=executions)
    return without_noise(then, folder)


def table_of_two_devices(folder):
    """Returns what is found of a table that two devices trained on."""
    found = {"replicas": two_devices().num_replicas_in_sync, "stages": set()}
    import tfbbb
    from tfbbb.training import train_table

    table = samples.diabetes()
    trained = train_table(table, SPEC, report=lambda at: found["stages"].add(at.stage))
    trained.export_to(folder / "model")
    options = {"num_samples": 20, "seed": 1, "method": "local"}
    inputs = trained.schema.inputs(table)
    found["means"] = [
        model.predictive(inputs, **options).mean
        for model in (tfbbb.load(folder / "model"), trained.model)
    ]
    return found


@pytest.fixture(scope="module")
def process():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def one(process):
    return process.submit(without_noise, "one").result()


@pytest.fixture(scope="module")
def found(process, tmp_path_factory):
    return process.submit(
        table_of_two_devices, tmp_path_factory.mktemp("devices")
    ).result()


def test_two_devices_take_the_steps_of_one(process, one):
    assert_alike(process.submit(without_noise, "all").result(), one)


@pytest.mark.few(1)
@pytest.mark.parametrize(("first", "then"), [("one", "all"), ("all", "one")])
def test_a_training_resumes_on_another_number_of_devices(
    process, one, tmp_path, first, then
):
    assert_alike(process.submit(resumed, first, then, tmp_path).result(), one)


def assert_alike(training, expected):
    (losses, variables), (expected_losses, expected_variables) = training, expected
    assert len(losses) == 4
    # The loss has the divergence once, however many replicas there are.
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
    for found, variable in zip(variables, expected_variables, strict=True):
        np.testing.assert_allclose(found, variable, rtol=1e-4, atol=1e-5)


def test_all_devices_are_used(found):
    assert found["replicas"] == 2
    (stage,) = found["stages"]
    assert stage.endswith("on 2 CPUs, which share the rows of each batch")


def test_model_of_two_devices_is_exported_as_it_is(found):
    exported, live = found["means"]
    np.testing.assert_allclose(exported, live, rtol=1e-4)


def test_only_device_is_named():
    from tfbbb.training.devices import describe_devices

    said = "on one CPU, as TensorFlow sees no other device"
    assert describe_devices("all") == said
    assert describe_devices("one") == ""
