"""Amounts, shares and grades by other libraries: 200 draws of each row of a test.

    python fit_masses.py INPUT.npz OUTPUT.npz

It reads `method`, `x_train`, `y_train` and `x_test`, and writes `draws` [rows, 200].
"""

import sys

import numpy as np

DRAWS, POWER = 200, 1.5
GENERATOR = np.random.default_rng(0)


def tweedie_draws(mean, dispersion):
    """Draws sums of Poisson many gamma amounts, of the power 1.5."""
    rate = mean ** (2.0 - POWER) / (dispersion * (2.0 - POWER))
    shape = (2.0 - POWER) / (POWER - 1.0)
    scale = dispersion * (POWER - 1.0) * mean ** (POWER - 1.0)
    number = GENERATOR.poisson(rate[:, None], (len(mean), DRAWS))
    drawn = GENERATOR.gamma(np.maximum(shape * number, 1e-9)) * scale[:, None]
    return np.where(number == 0, 0.0, drawn)


def by_tweedie(model, x, y, x_test):
    """Fits means, and the dispersion of their residuals."""
    model.fit(x, y)
    fitted = np.maximum(model.predict(x), 1e-9)
    dispersion = np.mean((y - fitted) ** 2 / fitted**POWER)
    return tweedie_draws(np.maximum(model.predict(x_test), 1e-9), dispersion)


def by_probabilities(classes, probabilities):
    """Draws classes by the probabilities of each row."""
    below = np.cumsum(probabilities, axis=1)[:, None, :-1]
    uniform = GENERATOR.uniform(size=(len(probabilities), DRAWS, 1))
    return np.asarray(classes, float)[(uniform > below).sum(axis=2)]


def draws(method, x, y, x_test):
    """Returns 200 draws of each row of the test."""
    if method == "catboost_tweedie":
        from catboost import CatBoostRegressor

        loss = f"Tweedie:variance_power={POWER}"
        model = CatBoostRegressor(
            loss_function=loss, verbose=0, thread_count=1, allow_writing_files=False
        )
        return by_tweedie(model, x, y, x_test)
    if method == "lightgbm_tweedie":
        from lightgbm import LGBMRegressor

        model = LGBMRegressor(
            objective="tweedie", tweedie_variance_power=POWER, n_jobs=1, verbose=-1
        )
        return by_tweedie(model, x, y, x_test)
    if method == "ngboost":
        from ngboost import NGBRegressor

        found = NGBRegressor(verbose=False, random_state=0).fit(x, y).pred_dist(x_test)
        normal = GENERATOR.normal(size=(len(x_test), DRAWS))
        drawn = found.params["loc"][:, None] + found.params["scale"][:, None] * normal
        return np.maximum(drawn, 0.0) if y.min() >= 0.0 else drawn
    if method == "ordered_model":
        from statsmodels.miscmodels.ordinal_model import OrderedModel

        fitted = OrderedModel(y, x, distr="logit").fit(method="bfgs", disp=False)
        return by_probabilities(np.unique(y), np.asarray(fitted.predict(x_test)))
    if method == "catboost_classes":
        from catboost import CatBoostClassifier

        model = CatBoostClassifier(
            verbose=0, thread_count=1, allow_writing_files=False
        ).fit(x, y)
        return by_probabilities(model.classes_, model.predict_proba(x_test))
    import statsmodels.api as sm

    # Shares as a regression of their logits, a little away from the ends.
    inside = np.clip(y, 0.005, 0.995)
    logits = np.log(inside / (1.0 - inside))
    fitted = sm.OLS(logits, sm.add_constant(x)).fit()
    mean = fitted.predict(sm.add_constant(x_test, has_constant="add"))
    normal = GENERATOR.normal(size=(len(x_test), DRAWS))
    return 1.0 / (1.0 + np.exp(-(mean[:, None] + np.sqrt(fitted.scale) * normal)))


def main():
    """Fits a method, and writes its draws."""
    with np.load(sys.argv[1], allow_pickle=False) as arrays:
        given = dict(arrays)
    rows = given["x_train"], given["y_train"], given["x_test"]
    np.savez(sys.argv[2], draws=draws(given["method"].item(), *rows))


if __name__ == "__main__":
    main()
