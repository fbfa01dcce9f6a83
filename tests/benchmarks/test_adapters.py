"""Networks with adapters are compared with LoRA on images of new digits."""

import pytest

from tests.benchmarks.digits import write_images
from tests.benchmarks.programs import load, run_smoke

adapters = load("adapters")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    write_images(folder)
    return folder


def test_smoke_run_compares_posteriors_with_lora(data, tmp_path):
    smoke = run_smoke("adapters", data, tmp_path / "adapters.json")
    assert len(smoke.records) == 2 + 1
    assert "of the weights are trained" in adapters.report(smoke)


def test_new_digits_are_five_to_nine(data):
    (x, y), (x_test, y_test) = adapters.new_digits(data, None)
    assert x.shape[1:] == x_test.shape[1:] == (28, 28, 1)
    assert set(y) == set(y_test) == set(range(5))
