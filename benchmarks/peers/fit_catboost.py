"""CatBoost: a uniform mixture of models, each with another seed and held-out tenth.

    python fit_catboost.py INPUT.npz OUTPUT.npz

Reads `x_train`, `y_train`, `x_test`, `seed`, `rounds`, `patience` and `members`. Of
numbers, writes `means` and `stddevs` [members, rows]; of classes (whole numbers as
`y_train` and `classes`, their number), `probabilities` [rows, classes]; and `seconds`
and `versions`.
"""

import os
import sys
import time
from importlib import metadata

import numpy as np
from catboost import CatBoostClassifier, CatBoostRegressor


def main() -> None:
    """Fits and predicts."""
    given = np.load(sys.argv[1])
    start = time.perf_counter()
    answers = [fit(given, member) for member in range(int(given["members"]))]
    if "classes" in given:
        found = {"probabilities": np.mean(answers, axis=0)}
    else:
        means, variances = np.moveaxis(np.array(answers), -1, 0)
        found = {"means": means, "stddevs": np.sqrt(variances)}
    np.savez(
        sys.argv[2],
        **found,
        seconds=time.perf_counter() - start,
        versions=f"catboost {metadata.version('catboost')}",
    )


def fit(given, member):
    """Returns [rows, 2], mean and variance, or the probabilities [rows, classes]."""
    x, y = given["x_train"], given["y_train"]
    seed = 1000 * int(given["seed"]) + member
    order = np.random.default_rng(seed).permutation(len(x))
    held_out, rows = np.split(order, [max(len(x) // 10, 1)])
    options = {
        "iterations": int(given["rounds"]),
        "random_seed": seed,
        "early_stopping_rounds": int(given["patience"]),
        "thread_count": int(os.environ.get("OMP_NUM_THREADS", "-1")),
        "allow_writing_files": False,
        "verbose": False,
    }
    if "classes" in given:
        model = CatBoostClassifier(loss_function="Logloss", **options)
    else:
        model = CatBoostRegressor(loss_function="RMSEWithUncertainty", **options)
    model.fit(x[rows], y[rows], eval_set=(x[held_out], y[held_out]))
    if "classes" in given:
        return model.predict_proba(given["x_test"])
    return model.predict(given["x_test"])


if __name__ == "__main__":
    main()
