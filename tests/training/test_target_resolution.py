import numpy as np
import pytest

from tfbbb.training.target_resolution import target_resolution


@pytest.mark.parametrize(
    ("targets", "step"),
    [
        ([3, 4, 8, 5], 1.0),
        ([3, 5, 9, 7], 2.0),
        ([0.5, 1.0, 2.5], 0.5),
        ([12.34, 56.7, 8.9], 0.04),
        ([1000, 3000, 7000], 2000.0),
        ([250000, 310000, 120000], 10000.0),
    ],
)
def test_the_step_is_the_greatest_that_fits(targets, step):
    found = target_resolution(np.array(targets, np.float32)[:, np.newaxis])
    assert found == pytest.approx(step)


def test_real_numbers_have_no_step():
    targets = np.random.default_rng(0).normal(size=(50, 1)).astype(np.float32)
    assert target_resolution(targets) is None
