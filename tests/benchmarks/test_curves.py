import numpy as np
import pytest

from tests.benchmarks.programs import load

curves = load("curves")


def test_noise_of_the_waves_is_that_of_their_targets():
    x = np.full(20_000, 0.2)
    noise = np.random.default_rng(0).normal(size=len(x))
    # The slope in e at 0.2: 1 + 0.6 pi cos(0.4 pi) + 1.2 pi cos(0.8 pi).
    slope = 1 + 0.6 * np.pi * np.cos(0.4 * np.pi) + 1.2 * np.pi * np.cos(0.8 * np.pi)
    assert curves.waves(x, noise).std() == pytest.approx(0.02 * abs(slope), rel=0.05)
