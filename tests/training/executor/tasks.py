"""Functions that the tests of executors run as tasks."""

import os
import signal
import time
from pathlib import Path

from tfbbb.training.executor import Task


def draw(seed, rows=3):
    """Normal numbers of a seed, after a time that differs."""
    import numpy as np

    time.sleep(0.05 * (seed % 3))
    return np.random.default_rng(seed).normal(size=rows)


def train(seed):
    """The weights of a small network after some steps of Adam."""
    import keras
    import numpy as np

    keras.utils.set_random_seed(seed)
    network = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)]
    )
    network.compile("adam", "mse")
    generator = np.random.default_rng(seed)
    x, y = generator.normal(size=(512, 4)), generator.normal(size=(512, 1))
    network.fit(x, y, epochs=2, verbose=0)
    return np.concatenate([weight.ravel() for weight in network.get_weights()])


def trainings():
    return [Task(f"seed {i}", train, {"seed": i}) for i in range(2)]


def count(path, number=0):
    """Adds a line to a file."""
    with Path(path).open("a") as file:
        file.write(f"{number}\n")
    return number


def die(path, times):
    """Dies by SIGKILL in the first `times` calls."""
    count(path)
    if len(Path(path).read_text().splitlines()) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def fail(number):
    raise KeyError(f"no number {number}")


def sleep(path):
    """Writes the id of its process and its child's, and sleeps."""
    import subprocess

    child = subprocess.Popen(["sleep", "600"])
    unfinished = Path(f"{path}.unfinished")
    unfinished.write_text(f"{os.getpid()} {child.pid}")
    unfinished.replace(path)
    time.sleep(600)


def wait_for(path):
    while not Path(path).exists():
        time.sleep(0.02)
    raise ValueError("enough")


def threads():
    return os.environ["TF_NUM_INTRAOP_THREADS"]


def call(function):
    return function()


def is_known(name):
    return name in {"one", "two", "three"}
