"""Counts with an exposure by the libraries that people know for them.

    python fit_rates.py INPUT.npz OUTPUT.npz

Reads `method`, numbers `x_train` and `x_test` [rows, columns], positive `e_train` and
`e_test` and counts `y_train`. Writes `mean`, `variance` [rows of the test] and
`seconds`. `catboost` has the logarithm of the exposure as its baseline, `glm` as the
offset of a Poisson and `negative binomial` of an NB2 regression.
"""

import sys
import time

import numpy as np


def fit(given):
    """Returns means and variances of the rows of the test."""
    method = given["method"].item()
    x, e, y = given["x_train"], given["e_train"], given["y_train"]
    x_test, e_test = given["x_test"], given["e_test"]
    if method == "catboost":
        from catboost import CatBoostRegressor, Pool

        model = CatBoostRegressor(
            loss_function="Poisson", verbose=0, random_seed=0, allow_writing_files=False
        )
        model.fit(Pool(x, y, baseline=np.log(e)))
        rows = Pool(x_test, baseline=np.log(e_test))
        mean = model.predict(rows, prediction_type="Exponent")
        return mean, mean
    import statsmodels.api as sm

    x, x_test = (sm.add_constant(rows, has_constant="add") for rows in (x, x_test))
    if method == "glm":
        model = sm.GLM(y, x, family=sm.families.Poisson(), exposure=e).fit()
        mean = model.predict(x_test, exposure=e_test)
        return mean, mean
    model = sm.NegativeBinomial(y, x, exposure=e).fit(disp=0, maxiter=200)
    mean = model.predict(x_test, exposure=e_test)
    return mean, mean + model.params[-1] * np.square(mean)


def main():
    """Fits and predicts."""
    with np.load(sys.argv[1], allow_pickle=False) as arrays:
        given = dict(arrays)
    began = time.perf_counter()
    mean, variance = fit(given)
    seconds = time.perf_counter() - began
    np.savez(sys.argv[2], mean=mean, variance=variance, seconds=seconds)


if __name__ == "__main__":
    main()
