"""A data directory of the image benchmarks, of random images."""

from pathlib import Path

import numpy as np


def write_images(directory: Path) -> np.ndarray:
    """Writes images of digits and of clothes; returns the images, [400, 28, 28]."""
    images = np.random.default_rng(0).integers(0, 255, (400, 28, 28)).astype("uint8")
    labels = np.arange(400) % 10
    np.savez(
        directory / "mnist.npz",
        **{"x_train": images, "y_train": labels, "x_test": images, "y_test": labels},
    )
    np.savez(directory / "fashion_mnist_test.npz", x=images[:30], y=labels[:30])
    return images
