"""Images of the data directory, as rows of pixels."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from program import DataError

SIDE = 28
PIXELS = SIDE * SIDE
# Blundell et al. 2015, section 5.1: the pixels are divided by 126.
_SCALE = 126.0


@dataclass(frozen=True)
class Digits:
    """Images [rows, 784] from 0 to 255/126 and labels [rows] of three parts."""

    train: tuple[np.ndarray, np.ndarray]
    validation: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]


def read_digits(data: Path, rows: int | None = None) -> Digits:
    """Reads `DIR/mnist.npz`; the last sixth of its training rows is for validation.

    Args:
        data: The data directory.
        rows: Number of rows to keep of each part; None for all.

    Raises:
        DataError: The directory has no such file.
    """
    path = data / "mnist.npz"
    if not path.is_file():
        raise DataError(
            "The data directory must have `mnist.npz` with `x_train` [n, 28, 28], "
            "`y_train` [n], `x_test` and `y_test`. "
            f"Received: --data {data}"
        )
    with np.load(path) as archive:
        images, labels = pixels(archive["x_train"]), archive["y_train"].astype("int64")
        test = pixels(archive["x_test"]), archive["y_test"].astype("int64")
    end = len(images) - len(images) // 6
    parts = [(images[:end], labels[:end]), (images[end:], labels[end:]), test]
    return Digits(*((x[:rows], y[:rows]) for x, y in parts))


def read_other_images(data: Path, rows: int | None = None) -> dict[str, np.ndarray]:
    """Returns the images [rows, 784] of every other file of the directory, by name.

    A file `SET.npz` has images if one of its arrays is of bytes [n, 28, 28].

    Args:
        data: The data directory.
        rows: Number of images to keep of each set; None for all.
    """
    found = {}
    for path in sorted(data.glob("*.npz")):
        if path.stem == "mnist":
            continue
        with np.load(path) as archive:
            arrays = (archive[name] for name in archive.files)
            images = next((array for array in arrays if _is_images(array)), None)
        if images is not None:
            found[path.stem] = pixels(images[:rows])
    return found


def pixels(images: np.ndarray) -> np.ndarray:
    """Returns images of bytes [n, 28, 28] as rows [n, 784]."""
    return images.reshape(len(images), PIXELS).astype("float32") / _SCALE


def _is_images(array: np.ndarray) -> bool:
    return array.dtype == np.uint8 and array.shape[1:] == (SIDE, SIDE)
