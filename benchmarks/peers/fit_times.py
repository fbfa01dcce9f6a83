"""Times that may be cut off, by lifelines and scikit-survival, and public sets of both.

    python fit_times.py INPUT.npz OUTPUT.npz

With `set` it writes `x` [rows, columns], `times` and `events` of one of `SETS`. With
`method` (`cox`, `weibull` or `forest`) it reads `x_train`, `times`, `events`, `x_test`
and `at`, and writes `survival` [rows of the test, times at], `order`, a number of each
row that grows with its predicted time, and `seconds`.
"""

import sys
import time

import numpy as np
import pandas as pd

SETS = ("rossi", "gbsg2", "whas500", "veterans")


def read(name):
    """Returns columns as numbers, times and events of a set."""
    if name == "rossi":
        from lifelines.datasets import load_rossi

        frame = load_rossi()
        return frame.drop(columns=["week", "arrest"]), frame["week"], frame["arrest"]
    from sksurv import datasets

    load = {
        "gbsg2": datasets.load_gbsg2,
        "whas500": datasets.load_whas500,
        "veterans": datasets.load_veterans_lung_cancer,
    }
    frame, targets = load[name]()
    event, length = targets.dtype.names
    return frame, targets[length], targets[event]


def fit(given):
    """Returns survival [rows, times] and the order of the rows."""
    method, at = given["method"].item(), given["at"]
    x, x_test = given["x_train"], given["x_test"]
    times, events = given["times"], given["events"]
    if method == "forest":
        from sksurv.ensemble import RandomSurvivalForest
        from sksurv.util import Surv

        model = RandomSurvivalForest(
            n_estimators=300, min_samples_leaf=10, random_state=0
        )
        model.fit(x, Surv.from_arrays(events == 1, times))
        low, high = model.unique_times_[[0, -1]]
        found = model.predict_survival_function(x_test)
        survival = np.stack([curve(np.clip(at, low, high)) for curve in found])
        return survival, -model.predict(x_test)
    from lifelines import CoxPHFitter, WeibullAFTFitter

    kept = x.std(axis=0) > 0
    names = [f"x{place}" for place in np.flatnonzero(kept)]
    frame = pd.DataFrame(x[:, kept], columns=names)
    rows = pd.DataFrame(x_test[:, kept], columns=names)
    penalty = {"penalizer": 0.01}
    kind = CoxPHFitter if method == "cox" else WeibullAFTFitter
    model = kind(**penalty).fit(
        frame.assign(_time=times, _event=events), "_time", "_event"
    )
    survival = model.predict_survival_function(rows, times=at).to_numpy().T
    if method == "cox":
        return survival, -model.predict_partial_hazard(rows).to_numpy()
    return survival, model.predict_median(rows).to_numpy()


def main():
    """Reads a set, or fits and predicts."""
    with np.load(sys.argv[1], allow_pickle=False) as arrays:
        given = dict(arrays)
    if "set" in given:
        frame, times, events = read(given["set"].item())
        x = pd.get_dummies(frame, drop_first=True).to_numpy(np.float64)
        np.savez(
            sys.argv[2],
            x=x,
            times=np.asarray(times, np.float64),
            events=np.asarray(events, np.float64),
        )
        return
    began = time.perf_counter()
    survival, order = fit(given)
    seconds = time.perf_counter() - began
    np.savez(sys.argv[2], survival=survival, order=order, seconds=seconds)


if __name__ == "__main__":
    main()
