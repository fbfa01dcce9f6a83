import numpy as np

from tfbbb.bayes.signal_to_noise import signal_to_noise
from tfbbb.layers import DenseVariational


def test_ratios_without_variance_are_infinite_or_0():
    layer = DenseVariational(3)
    layer.build((None, 1))
    layer.bias.variables["mean"].assign([0.0, -2.0, 3.0])
    layer.bias.variables["log_scale"].assign([-np.inf, -np.inf, np.log(2.0)])
    np.testing.assert_allclose(
        signal_to_noise(layer.bias), [0.0, np.inf, 1.5], rtol=1e-6
    )
