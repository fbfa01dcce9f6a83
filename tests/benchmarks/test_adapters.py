"""Networks with adapters are compared with LoRA on images of new digits."""

import numpy as np
import pytest

from tests.benchmarks.programs import load, run_smoke

adapters = load("adapters")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A directory with images of digits that are their own classes."""
    folder = tmp_path_factory.mktemp("images")
    generator = np.random.default_rng(0)
    labels = np.arange(400) % 10
    images = generator.integers(0, 255, size=(400, 28, 28)).astype("uint8")
    np.savez(
        folder / "mnist.npz",
        x_train=images,
        y_train=labels,
        x_test=images,
        y_test=labels,
    )
    return folder


def test_smoke_run_compares_posteriors_with_lora(data, tmp_path):
    smoke = run_smoke("adapters", data, tmp_path / "adapters.json")
    assert len(smoke.records) == 2 * 2 + 1
    compared = adapters.compare(smoke)
    assert {each.figure for each in compared} == set(adapters.FIGURES)
    assert all(np.isfinite(each.margin) for each in compared)
    assert "of the weights are trained" in adapters.report(smoke)


def test_new_digits_are_five_to_nine(data):
    (x, y), (x_test, y_test) = adapters.new_digits(data, None)
    assert x.shape[1:] == x_test.shape[1:] == (28, 28, 1)
    assert set(y) == set(y_test) == set(range(5))
