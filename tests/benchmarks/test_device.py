"""The device that the records of benchmarks name."""

import tensorflow as tf

from tests.benchmarks.programs import FOLDER, load

device = load("device")
timing = load("timing")


def test_a_gpu_is_named_in_place_of_the_processor(monkeypatch):
    class GPU:
        name = "/physical_device:GPU:0"

    details = {"device_name": "NVIDIA H100"}
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [GPU(), GPU()])
    monkeypatch.setattr(
        tf.config.experimental, "get_device_details", lambda gpu: details
    )
    found = device.describe_device()
    assert found == {"kind": "GPU", "name": "NVIDIA H100", "number": 2}


def test_a_machine_is_described_with_its_device(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    assert timing.machine()["device"] == device.describe_device()
