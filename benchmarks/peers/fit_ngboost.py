"""NGBoost: normal distributions, early stopping on a tenth of the rows.

    python fit_ngboost.py INPUT.npz OUTPUT.npz

Reads `x_train`, `y_train`, `x_test`, `seed`, `rounds` and `patience`; writes `means`
and `stddevs` [1, rows], `seconds` and `versions`.
"""

import sys
import time
from importlib import metadata

import numpy as np
from ngboost import NGBRegressor


def main() -> None:
    """Fits and predicts."""
    given = np.load(sys.argv[1])
    x, y = given["x_train"], given["y_train"]
    seed = int(given["seed"])
    start = time.perf_counter()
    order = np.random.default_rng(seed).permutation(len(x))
    held_out, rows = np.split(order, [max(len(x) // 10, 1)])
    model = NGBRegressor(
        n_estimators=int(given["rounds"]), random_state=seed, verbose=False
    )
    model.fit(
        x[rows],
        y[rows],
        X_val=x[held_out],
        Y_val=y[held_out],
        early_stopping_rounds=int(given["patience"]),
    )
    # The best iteration is counted from 0.
    found = model.pred_dist(given["x_test"], max_iter=model.best_val_loss_itr + 1)
    np.savez(
        sys.argv[2],
        means=found.params["loc"][np.newaxis],
        stddevs=found.params["scale"][np.newaxis],
        seconds=time.perf_counter() - start,
        versions=f"ngboost {metadata.version('ngboost')}",
    )


if __name__ == "__main__":
    main()
