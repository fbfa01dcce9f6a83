"""The digits of scikit-learn as a data directory of the image benchmarks."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits


def write_digits(directory: Path) -> None:
    """Writes `mnist.npz` and the stripes `stripes.npz`, images of 28 by 28 bytes."""
    digits = load_digits()
    large = np.kron(digits.images, np.ones((3, 3))) * (255 / 16)
    images = np.pad(large, ((0, 0), (2, 2), (2, 2))).astype("uint8")
    labels = digits.target.astype("uint8")
    np.savez(
        directory / "mnist.npz",
        x_train=images[:1440],
        y_train=labels[:1440],
        x_test=images[1440:],
        y_test=labels[1440:],
    )
    rows, columns = np.meshgrid(np.arange(28), np.arange(28), indexing="ij")
    stripes = [
        255 * ((rows * a + columns * b) // 3 % 2) for a in range(1, 9) for b in range(8)
    ]
    np.savez(directory / "stripes.npz", x_test=np.stack(stripes).astype("uint8"))
