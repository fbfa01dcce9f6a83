"""Forecasts of time series by what a user would pick, by the names of `METHODS`.

    python fit_series.py INPUT.npz OUTPUT.npz

Reads `method`, `series` [points], `season`, `horizon`, `scale`, `seed`, the
`origins` (how many points each forecast knows) and `fits`, of each origin how many
points the method was fitted to. Writes `seconds`, `versions`, `quantiles` [levels,
origins, horizon] and `sums` [levels, origins] of all steps, at the levels
(k + 1/2) / levels. A method without paths adds its quantiles.
"""

import copy
import sys
import time
import warnings
from importlib import metadata

import lightgbm
import numpy as np
from statsforecast.arima import forward_arima
from statsforecast.ets import forward_ets
from statsforecast.models import AutoARIMA, AutoETS

LEVELS = (np.arange(100) + 0.5) / 100
PATHS = 2000
# Between and beyond these the quantiles of trees are linear in the normal quantile.
TREE_LEVELS = (0.025, 0.05, *(np.arange(1, 10) / 10), 0.95, 0.975)
TREES = {
    **{"objective": "quantile", "learning_rate": 0.05, "num_leaves": 8},
    **{"min_data_in_leaf": 8, "verbosity": -1, "num_threads": 1},
}
ROUNDS = 100
SCALES = {
    "values": (np.asarray, np.asarray),
    "roots": (np.sqrt, lambda z: np.square(np.maximum(z, 0.0))),
    "logarithms": (np.log, np.exp),
}


def main() -> None:
    """Fits and forecasts."""
    warnings.simplefilter("ignore")
    given = {k: v if v.ndim else v.item() for k, v in np.load(sys.argv[1]).items()}
    start = time.perf_counter()
    function, library = METHODS[given.pop("method")]
    found = function(**given)
    seconds = time.perf_counter() - start
    versions = f"{library} {metadata.version(library)}"
    np.savez(sys.argv[2], **found, seconds=seconds, versions=versions)


def paths_of(make, forward, series, season, horizon, scale, origins, fits, seed):
    """Returns quantiles of paths of a model, which moves on between its fits."""
    scaled, unscaled = SCALES[scale]
    y = scaled(series)
    models, quantiles, sums = {}, [], []
    for known, fitted in zip(origins, fits, strict=True):
        if fitted not in models:
            models[fitted] = make(season_length=season).fit(y[:fitted])
        model = copy.copy(models[fitted])
        model.model_ = forward(model.model_, y=y[:known])
        paths = unscaled(model.simulate(h=horizon, n_paths=PATHS, seed=seed))
        quantiles.append(np.quantile(paths, LEVELS, axis=0))
        sums.append(np.quantile(paths.sum(axis=1), LEVELS))
    return {"quantiles": np.stack(quantiles, 1), "sums": np.stack(sums, 1)}


def ets(**given):
    """Exponential smoothing, the form chosen by AICc, of the values themselves."""
    return paths_of(AutoETS, forward_ets, **given | {"scale": "values"})


def arima(**given):
    """Seasonal ARIMA, its orders chosen by AICc."""
    return paths_of(AutoARIMA, forward_arima, **given)


def trees(series, season, horizon, scale, origins, fits, seed):
    """Quantile regressions by trees, one for each step and level."""
    scaled, unscaled = SCALES[scale]
    y = scaled(series)
    lags = max(2 * season, 13)
    places = np.arange(lags, len(y))
    # Row t: the values before the last one known, y[t], relative to it.
    windows = np.lib.stride_tricks.sliding_window_view(y, lags + 1)
    x = np.column_stack([windows[:, :-1] - windows[:, -1:], places % season])
    found = np.empty((len(TREE_LEVELS), len(origins), horizon))
    for fitted in np.unique(fits):
        which = np.flatnonzero(np.asarray(fits) == fitted)
        known = np.asarray(origins)[which] - 1
        for step in range(1, horizon + 1):
            rows = places[places + step < fitted]
            data = lightgbm.Dataset(x[rows - lags], y[rows + step] - y[rows])
            for level, alpha in enumerate(TREE_LEVELS):
                options = {**TREES, "alpha": alpha, "seed": seed}
                model = lightgbm.train(options, data, ROUNDS)
                steps = y[known] + model.predict(x[known - lags])
                found[level, which, step - 1] = steps
    quantiles = unscaled(between(np.sort(found, axis=0)))
    return {"quantiles": quantiles, "sums": quantiles.sum(axis=2)}


def between(found):
    """Returns quantiles at `LEVELS` from those at `TREE_LEVELS`."""
    from scipy.stats import norm

    known, wanted = norm.ppf(TREE_LEVELS), norm.ppf(LEVELS)
    place = np.clip(np.searchsorted(known, wanted), 1, len(known) - 1)
    share = (wanted - known[place - 1]) / (known[place] - known[place - 1])
    share = share.reshape(-1, 1, 1)
    return (1 - share) * found[place - 1] + share * found[place]


METHODS = {
    "ETS": (ets, "statsforecast"),
    "AutoARIMA": (arima, "statsforecast"),
    "LightGBM quantiles": (trees, "lightgbm"),
}


if __name__ == "__main__":
    main()
