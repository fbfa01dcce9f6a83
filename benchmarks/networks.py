"""The networks that `uci` compares the defaults with, at the published protocol."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import keras
import numpy as np
from network_settings import SETTINGS
from scores import MixtureOfNormals

import tfbbb
from tfbbb.bayes.likelihoods import Normal
from tfbbb.layers import DenseVariational

# Training may end after these shares of the steps.
_STAGES = (0.125, 0.25, 0.5, 1.0)
_VALIDATION = 0.2
# Candidates of the noise of dropout, in standard deviations of the target.
_NOISE = np.geomspace(0.01, 1.5, 60)
_POINT = {"maximum_likelihood": None, "deep_ensemble": None, "map": "normal"}


def fit_and_predict(
    method: str,
    x_train: np.ndarray,
    y_train: np.ndarray,
    x_test: np.ndarray,
    *,
    seed: int,
    smoke: bool = False,
) -> tuple[Any, float, dict[str, Any]]:
    """Chooses within the training rows, fits to all of them and predicts."""
    start = time.perf_counter()
    options = SETTINGS[method] | ({"steps": 80, "rates": [0.05]} if smoke else {})
    shift, scale = x_train.mean(axis=0), x_train.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    x, x_test = ((values - shift) / scale for values in (x_train, x_test))
    y = y_train[:, np.newaxis]
    order = np.random.default_rng(seed).permutation(len(x))
    held_out, rows = np.split(order, [max(int(_VALIDATION * len(x)), 1)])
    if method == "dropout":
        found, chosen = _dropout(x, y, x_test, rows, held_out, seed, options)
    else:
        stage = _best_stage(method, x, y, rows, held_out, seed, options)
        model = _network(method, x, seed, options)
        for _ in _train(model, x, y, options, stages=[stage]):
            pass
        found, chosen = model.predictive(x_test), {"stage": stage}
    return found, time.perf_counter() - start, chosen


def _best_stage(
    method: str,
    x: np.ndarray,
    y: np.ndarray,
    rows: np.ndarray,
    held_out: np.ndarray,
    seed: int,
    options: Mapping[str, Any],
) -> float:
    """Returns the share of the steps with the best held-out log-likelihood."""
    model = _network(method, x, seed, options)
    found = {}
    for stage in _train(model, x[rows], y[rows], options, _STAGES):
        found[stage] = np.mean(model.predictive(x[held_out]).log_prob(y[held_out]))
    return max(found, key=lambda stage: found[stage])


def _network(
    method: str,
    x: np.ndarray,
    seed: int,
    options: Mapping[str, Any],
    rate: float | None = None,
) -> tfbbb.BayesianModel:
    keras.utils.set_random_seed(seed)
    is_large = len(x) >= options["large_rows"]
    units = options["large_units" if is_large else "units"]
    inputs = keras.Input((x.shape[1],))
    heteroscedastic = method == "deep_ensemble"
    num_outputs = 2 if heteroscedastic else 1
    if rate is not None:
        hidden = keras.layers.Dropout(rate)(inputs)
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
        hidden = keras.layers.Dropout(rate)(hidden)
        outputs = keras.layers.Dense(num_outputs)(hidden)
        return tfbbb.BayesianModel(inputs, outputs)
    layer: dict[str, Any] = {"members": options.get("members", 1)}
    if method in _POINT:
        prior = _POINT[method]
        layer |= {"posterior": "point", "bias_posterior": "point"}
        layer |= {"prior": prior, "bias_prior": prior}
    hidden = DenseVariational(units, activation="relu", **layer)(inputs)
    outputs = DenseVariational(num_outputs, **layer)(hidden)
    likelihood = Normal(heteroscedastic=heteroscedastic)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)


def _train(
    model: tfbbb.BayesianModel,
    x: np.ndarray,
    y: np.ndarray,
    options: Mapping[str, Any],
    stages: Iterable[float],
) -> Any:
    """Trains a model; yields each stage, a share of the steps, when it is reached."""
    # The largest power of two with 16 batches, from 32 to 256.
    batch_size = int(np.clip(2 ** int(np.log2(max(len(x) / 16, 1))), 32, 256))
    epochs = max(options["steps"] // -(-len(x) // batch_size), len(_STAGES))
    model.compile(tfbbb.optimizers.Adam(options["learning_rate"]))
    done = 0
    for stage in stages:
        until = max(round(stage * epochs), 1)
        if until > done:
            model.fit(x, y, batch_size=batch_size, epochs=until - done, verbose=0)
        done = until
        yield stage


def _dropout(
    x: np.ndarray,
    y: np.ndarray,
    x_test: np.ndarray,
    rows: np.ndarray,
    held_out: np.ndarray,
    seed: int,
    options: Mapping[str, Any],
) -> tuple[MixtureOfNormals, dict[str, Any]]:
    """Monte Carlo dropout; rate, steps and noise are chosen on held-out rows."""
    spread = float(y.std())
    best, chosen = -np.inf, (0.0, 0.0, 0.0)
    for rate in options["rates"]:
        model = _network("dropout", x, seed, options, rate)
        for stage in _train(model, x[rows], y[rows], options, _STAGES):
            means = _passes(model, x[held_out], options)
            for noise in spread * _NOISE:
                mixture = MixtureOfNormals(means, np.full_like(means, noise))
                score = float(mixture.log_prob(y[held_out, 0]).mean())
                if score > best:
                    best, chosen = score, (rate, stage, noise)
    rate, stage, noise = chosen
    model = _network("dropout", x, seed, options, rate)
    for _ in _train(model, x, y, options, stages=[stage]):
        pass
    means = _passes(model, x_test, options)
    found = MixtureOfNormals(means, np.full_like(means, noise))
    return found, {"rate": rate, "stage": stage, "noise": noise}


def _passes(
    model: tfbbb.BayesianModel, x: np.ndarray, options: Mapping[str, Any]
) -> np.ndarray:
    """Returns the means [passes, rows] of the network's passes with dropout."""
    prediction = model.predictive(
        x, num_samples=options["passes"], include_dropout=True
    )
    return np.asarray(prediction.ask("mean"), float)[..., 0].T
