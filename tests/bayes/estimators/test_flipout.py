import keras
import numpy as np

from tfbbb.layers import DenseVariational

ROWS = 2000


def test_every_output_of_a_row_has_its_own_sign():
    keras.utils.set_random_seed(0)
    layer = DenseVariational(3, estimator="flipout", use_bias=False, kl_weight=0.1)
    layer.build((None, 2))
    mean = np.asarray(layer.kernel.mean)
    for unit in np.eye(2, dtype="float32"):
        rows = np.tile(unit, (ROWS, 1))
        signs = np.sign(np.asarray(layer(rows)) - rows @ mean)
        # Of independent signs, the mean has the standard error 1 / sqrt(n).
        assert np.abs(signs.mean(axis=0)).max() < 4.5 / np.sqrt(ROWS)
        for one, other in ((0, 1), (0, 2), (1, 2)):
            correlation = (signs[:, one] * signs[:, other]).mean()
            assert abs(correlation) < 4.5 / np.sqrt(ROWS)
