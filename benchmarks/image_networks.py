"""Networks of two hidden layers for images of digits, and their training."""

import json
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from image_sets import PIXELS

from tfbbb import BayesianModel
from tfbbb.bayes.kl_schedules import Tempered
from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.bayes.priors import Normal
from tfbbb.inference import Laplace
from tfbbb.layers import DenseVariational, RandomFeatures
from tfbbb.model.optimizers import Adam
from tfbbb.prediction import Predictive
from tfbbb.scores.metrics import expected_calibration_error

NUM_CLASSES = 10


def make_network(
    width: int, settings: Mapping[str, Any], *, members: int = 1
) -> BayesianModel:
    """Returns a network of two hidden layers of ReLUs that ends in logits."""
    if "length_scale" in settings:
        return _gaussian_process(width, settings)
    if settings["initial_scale"] is None:
        options: dict[str, Any] = {
            "posterior": "point",
            "prior": None,
            "bias_posterior": "point",
            "bias_prior": None,
        }
    else:
        options = {
            "posterior": MeanFieldNormal(settings["initial_scale"]),
            "prior": Normal(settings["prior_scale"]),
            "estimator": "local",
        }
    inputs = keras.Input((PIXELS,))
    hidden = keras.layers.Dropout(settings["input_dropout"])(inputs)
    for _ in range(2):
        hidden = DenseVariational(
            width, "relu", kernel_initializer="he_normal", **options
        )(hidden)
        hidden = keras.layers.Dropout(settings["hidden_dropout"])(hidden)
    logits = DenseVariational(NUM_CLASSES, **options)(hidden)
    return BayesianModel(inputs, logits, likelihood="categorical", members=members)


def _gaussian_process(width: int, settings: Mapping[str, Any]) -> BayesianModel:
    """Returns a network of two residual layers of ReLUs, under random features.

    A projection that is not trained, and residual layers of bounded norm, keep the
    distances of images (Liu et al. 2020, section 3.1).
    """
    inputs = keras.Input((PIXELS,))
    hidden = keras.layers.Dense(
        width, use_bias=False, kernel_initializer="orthogonal", trainable=False
    )(inputs)
    for _ in range(2):
        dense = keras.layers.Dense(width, "relu", kernel_initializer="he_normal")
        change = keras.layers.SpectralNormalization(dense)(hidden)
        change = keras.layers.Rescaling(settings["norm"])(change)
        hidden = keras.layers.Add()([hidden, change])
    features = RandomFeatures(settings["features"], settings["length_scale"])(hidden)
    logits = DenseVariational(
        NUM_CLASSES,
        use_bias=False,
        posterior="point",
        prior=Normal(settings["prior_scale"]),
    )(features)
    return BayesianModel(inputs, logits, likelihood="categorical")


def train(
    make: Callable[[], BayesianModel],
    rows: tuple[np.ndarray, np.ndarray],
    settings: Mapping[str, Any],
    *,
    seed: int,
    directory: Path,
    points: Collection[int] = (),
    score: Callable[[BayesianModel], Mapping[str, Any]] = lambda model: {},
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> tuple[BayesianModel, dict[str, Any]]:
    """Trains a network by Adam, whose learning rate falls as a cosine to 0.

    The last layer of SNGP gets its posterior afterwards.
    """
    keras.utils.set_random_seed(seed)
    model = make()
    epochs, batch_size = settings["epochs"], settings["batch_size"]
    steps = epochs * math.ceil(len(rows[0]) / batch_size)
    rate = keras.optimizers.schedules.CosineDecay(settings["learning_rate"], steps)
    model.compile(
        Adam(rate), kl_schedule=Tempered(settings["temperature"]), steps_per_execution=8
    )
    directory.mkdir(parents=True, exist_ok=True)
    progress = _Progress(directory / "progress.json", points, score)
    # A checkpoint that is newer than the progress would lack an epoch's figures.
    checkpoint = keras.callbacks.BackupAndRestore(directory, delete_checkpoint=False)
    model.fit(
        *rows,
        batch_size=batch_size,
        epochs=epochs,
        verbose=0,
        callbacks=[*callbacks, progress, checkpoint],
    )
    if "length_scale" in settings:
        posterior = Laplace("kron", "last_layer", prior_precision=None)
        model = posterior.fit(model, *rows, verbose=0)
    return model, progress.figures()


def score_classes(prediction: Predictive, labels: np.ndarray) -> dict[str, float]:
    """Returns error and ECE in percent, and the mean NLL in nats."""
    wrong = prediction.probabilities.argmax(axis=-1) != labels
    return {
        "error": 100.0 * float(wrong.mean()),
        "nll": -float(prediction.log_prob(labels).mean()),
        "ece": 100.0 * expected_calibration_error(prediction, labels),
    }


class _Progress(keras.callbacks.Callback):
    """Writes the seconds and, at some epochs, the scores to a JSON file."""

    def __init__(
        self,
        path: Path,
        points: Collection[int],
        score: Callable[[BayesianModel], Mapping[str, Any]],
    ) -> None:
        super().__init__()
        self._path = path
        self._points = frozenset(points)
        self._score = score
        self._epochs = json.loads(path.read_text()) if path.exists() else {}

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._begin = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        figures = {"seconds": time.perf_counter() - self._begin}
        if epoch + 1 in self._points:
            figures |= self._score(self.model)
            print(f"epoch {epoch + 1}: {figures}", flush=True)
        # JSON has no integers as keys. An epoch that is trained again is replaced.
        self._epochs[str(epoch + 1)] = figures
        self._path.write_text(json.dumps(self._epochs))

    def figures(self) -> dict[str, Any]:
        seconds = [figures["seconds"] for figures in self._epochs.values()]
        scores = [
            {"epoch": int(epoch), **figures}
            for epoch, figures in self._epochs.items()
            if int(epoch) in self._points
        ]
        for figures in scores:
            del figures["seconds"]
        return {"seconds_per_epoch": float(np.median(seconds)), "scores": scores}
