"""The models that a user would pick for a table, by the names of `METHODS`.

    python fit_table.py INPUT.npz OUTPUT.npz

Reads `method`, `task`, `seed`, the rows, and the options of the method. The rows are
`x_train`, `y_train` and `x_test`, or files as they are: `train` and `test` (paths of
CSV files), `separator`, `decimal` and `target`. Writes `seconds`, `versions` and

- of classes, `probabilities` [rows, classes] and `classes`;
- of numbers, a density as `means` and `stddevs` [members, rows], or, of a method
  without one, `mean` [rows] and `quantiles` [levels, rows] at (k + 1/2) / levels;
- of a method with intervals beside its density, `interval` [2, rows], of 90 %.

Cells are what pandas takes them for. Missing numbers get the median, texts indicators
of their fifty most frequent values; CatBoost takes both as they are. Methods without
`tuned` in their names have the defaults of their libraries.
"""

import os
import sys
import time
from importlib import metadata
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

LEVELS = (np.arange(100) + 0.5) / 100
COVERAGE = 0.9
THREADS = int(os.environ.get("OMP_NUM_THREADS", "-1"))
_ROWS = ("x_train", "y_train", "x_test", "train", "test", "separator", "decimal")
_COMMON = ("method", "task", "seed", "target")


class Rows(NamedTuple):
    """Rows to learn from and to predict.

    Attributes:
        train: Inputs.
        y: Targets, or the codes of classes.
        test: Inputs to predict.
        classes: The classes in the order of their codes; None of numbers.
        seed: The seed.
    """

    train: pd.DataFrame
    y: np.ndarray
    test: pd.DataFrame
    classes: np.ndarray | None
    seed: int

    def encoded(self):
        """Returns the inputs of both as arrays of numbers."""
        features = encoder(self.train).fit(self.train)
        return features.transform(self.train), features.transform(self.test)

    def folds(self, number):
        """Returns the rows to train on and the rest of each fold."""
        order = np.random.default_rng(self.seed).permutation(len(self.y))
        for fold in np.array_split(order, number):
            yield np.setdiff1d(order, fold), fold


def main() -> None:
    """Fits and predicts."""
    given = {k: v if v.ndim else v.item() for k, v in np.load(sys.argv[1]).items()}
    start = time.perf_counter()
    rows = read(given)
    options = {k: v for k, v in given.items() if k not in (*_ROWS, *_COMMON)}
    function, library = METHODS[given["method"]]
    found = function(rows, **options)
    if rows.classes is not None:
        found["classes"] = rows.classes
    seconds = time.perf_counter() - start
    versions = f"{library} {metadata.version(library)}"
    np.savez(sys.argv[2], **found, seconds=seconds, versions=versions)


def read(given):
    """Returns the rows of arrays or files."""
    if "x_train" in given:
        train, test = (pd.DataFrame(given[name]) for name in ("x_train", "x_test"))
        y = pd.Series(given["y_train"])
    else:
        options = {"sep": given["separator"], "decimal": given["decimal"]}
        train, test = (
            pd.read_csv(given[name], **options) for name in ("train", "test")
        )
        y = train.pop(given["target"])
    texts = text_columns(train)
    train, test = (
        frame[train.columns]
        .astype(dict.fromkeys(texts, object))
        .fillna(dict.fromkeys(texts, ""))
        .astype(dict.fromkeys(texts, str))
        for frame in (train, test)
    )
    for name in train.columns.difference(texts):
        test[name] = pd.to_numeric(test[name], errors="coerce")
    if given["task"] == "regression":
        return Rows(train, as_numbers(y), test, None, given["seed"])
    values = y if "x_train" in given else y.astype(str)
    classes, codes = np.unique(values.to_numpy(), return_inverse=True)
    return Rows(train, codes, test, classes.astype(str), given["seed"])


def as_numbers(y):
    """A target such as $1,204.50 is no number to pandas: its user would strip it."""
    if y.dtype.kind in "iuf":
        return y.to_numpy(float)
    return pd.to_numeric(y.str.replace(r"[$,%]", "", regex=True)).to_numpy(float)


def constant(rows):
    """Knows the targets alone."""
    if rows.classes is not None:
        shares = np.bincount(rows.y) / len(rows.y)
        return {"probabilities": np.tile(shares, (len(rows.test), 1))}
    return normals(np.full(len(rows.test), rows.y.mean()), rows.y.std())


def linear(rows):
    """Ridge regression with the noise of its residuals, or logistic regression."""
    x, x_test = rows.encoded()
    if rows.classes is not None:
        model = LogisticRegression(max_iter=5000).fit(x, rows.y)
        return {"probabilities": model.predict_proba(x_test)}
    model = RidgeCV(np.geomspace(1e-3, 1e4, 15)).fit(x, rows.y)
    return normals(model.predict(x_test), (rows.y - model.predict(x)).std())


def random_forest(rows):
    """A random forest with the noise of its out-of-bag rows."""
    x, x_test = rows.encoded()
    if rows.classes is not None:
        model = RandomForestClassifier(random_state=rows.seed).fit(x, rows.y)
        return {"probabilities": model.predict_proba(x_test)}
    model = RandomForestRegressor(oob_score=True, random_state=rows.seed)
    model.fit(x, rows.y)
    return normals(model.predict(x_test), (rows.y - model.oob_prediction_).std())


def catboost(rows, members=None, rounds=None, patience=None, **options):
    """A mixture of models; with patience each is stopped by another tenth of rows.

    A mixture has five members, of classes one.
    """
    answers = []
    for member in range(members or (1 if rows.classes is not None else 5)):
        seed = 1000 * rows.seed + member
        model = catboost_model(rows, random_seed=seed, iterations=rounds, **options)
        if patience:
            held_out, rest = held_out_tenth(rows, seed)
            model.set_params(early_stopping_rounds=patience)
            fit_catboost(model, rows, rest, held_out)
        else:
            model.fit(rows.train, rows.y)
        predict = model.predict if rows.classes is None else model.predict_proba
        answers.append(predict(rows.test))
    if rows.classes is not None:
        return {"probabilities": np.mean(answers, axis=0)}
    means, variances = np.moveaxis(np.array(answers), -1, 0)
    return {"means": means, "stddevs": np.sqrt(variances)}


def catboost_tuned(rows, rounds=1000, patience=50, folds=3):
    """CatBoost with the best of nine candidates, and conformal intervals."""

    def fit(candidate, rest, fold):
        model = catboost_model(
            rows, iterations=rounds, early_stopping_rounds=patience, **candidate
        )
        fit_catboost(model, rows, rest, fold)
        (loss,) = model.get_best_score()["validation"].values()
        if rows.classes is not None:
            return loss, model.tree_count_, None
        mean, variance = model.predict(rows.train.iloc[fold]).T
        return loss, model.tree_count_, np.abs(rows.y[fold] - mean) / variance**0.5

    candidates = [
        {"depth": depth, "learning_rate": rate, "l2_leaf_reg": penalty}
        for depth in (4, 6, 8)
        for rate, penalty in ((0.03, 3.0), (0.03, 10.0), (0.1, 3.0))
    ]
    options, scaled = tune(rows, candidates, fit, folds)
    return with_conformal_interval(catboost(rows, **options), scaled)


def catboost_model(rows, **options):
    """Returns a model of CatBoost."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    options |= {"thread_count": THREADS, "allow_writing_files": False}
    options |= {"cat_features": text_columns(rows.train), "verbose": False}
    if rows.classes is not None:
        return CatBoostClassifier(**options)
    return CatBoostRegressor(loss_function="RMSEWithUncertainty", **options)


def fit_catboost(model, rows, rest, held_out):
    """Fits a model that rows held out stop."""
    if rows.classes is not None:
        # CatBoost ends at a class that it did not learn.
        held_out = held_out[np.isin(rows.y[held_out], rows.y[rest])]
    left_out = (rows.train.iloc[held_out], rows.y[held_out])
    model.fit(rows.train.iloc[rest], rows.y[rest], eval_set=left_out)


def ngboost(rows, rounds=500, patience=None, depth=3, learning_rate=0.01):
    """Normal distributions; with patience a tenth of the rows stops the rounds."""
    x, x_test = rows.encoded()
    model = ngboost_model(rows, rounds, depth, learning_rate)
    if patience:
        held_out, rest = held_out_tenth(rows, rows.seed)
        fit_ngboost(model, x, rows.y, rest, held_out, patience)
    else:
        model.fit(x, rows.y)
    if rows.classes is not None:
        return {"probabilities": model.predict_proba(x_test, max_iter=trees(model))}
    return normals(*moments(model, x_test))


def ngboost_tuned(rows, rounds=1000, patience=50, folds=3):
    """NGBoost with the best of three depths, and conformal intervals."""
    x, _ = rows.encoded()

    def fit(candidate, rest, fold):
        model = ngboost_model(rows, rounds, **candidate)
        fit_ngboost(model, x, rows.y, rest, fold, patience)
        prediction = model.pred_dist(x[fold], max_iter=trees(model))
        loss = -np.mean(prediction.logpdf(rows.y[fold]))
        if rows.classes is not None:
            return loss, trees(model), None
        mean, stddev = moments(model, x[fold])
        return loss, trees(model), np.abs(rows.y[fold] - mean) / stddev

    candidates = [{"depth": depth, "learning_rate": 0.03} for depth in (2, 3, 5)]
    options, scaled = tune(rows, candidates, fit, folds)
    return with_conformal_interval(ngboost(rows, **options), scaled)


def ngboost_model(rows, rounds, depth, learning_rate):
    """Returns a model of NGBoost."""
    from ngboost import NGBClassifier, NGBRegressor
    from ngboost.distns import k_categorical

    kind, options = NGBRegressor, {}
    if rows.classes is not None:
        kind, options = NGBClassifier, {"Dist": k_categorical(len(rows.classes))}
    return kind(
        Base=DecisionTreeRegressor(criterion="friedman_mse", max_depth=depth),
        n_estimators=rounds,
        learning_rate=learning_rate,
        random_state=rows.seed,
        verbose=False,
        **options,
    )


def fit_ngboost(model, x, y, rest, held_out, patience):
    """Fits a model that rows held out stop."""
    model.fit(
        x[rest],
        y[rest],
        X_val=x[held_out],
        Y_val=y[held_out],
        early_stopping_rounds=patience,
    )


def trees(model):
    """Returns how many trees of NGBoost predict; None for all."""
    # The best iteration is counted from 0.
    best = model.best_val_loss_itr
    return None if best is None else best + 1


def moments(model, x):
    """Returns means and standard deviations of NGBoost."""
    found = model.pred_dist(x, max_iter=trees(model)).params
    return found["loc"], found["scale"]


def quantile_forest(rows):
    """A quantile regression forest; out-of-bag rows choose the size of its leaves."""
    from quantile_forest import RandomForestQuantileRegressor

    x, x_test = rows.encoded()
    found = []
    for size in (1, 3, 10, 30):
        model = RandomForestQuantileRegressor(
            n_estimators=500,
            min_samples_leaf=size,
            max_samples_leaf=None,
            n_jobs=THREADS,
            random_state=rows.seed,
        ).fit(x, rows.y)
        some = LEVELS[4::10]
        quantiles = model.predict(x, quantiles=some.tolist(), oob_score=True)
        gaps = rows.y[:, np.newaxis] - quantiles
        found.append((np.maximum(some * gaps, (some - 1) * gaps).mean(), model))
    _, model = min(found, key=lambda pair: pair[0])
    return {
        "mean": model.predict(x_test, quantiles="mean"),
        "quantiles": model.predict(x_test, quantiles=LEVELS.tolist()).T,
    }


def crepes(rows):
    """A conformal predictive system around a forest, calibrated by out-of-bag rows.

    It is normalised by the difficulty of a row, the variance of the trees there.
    """
    from crepes import WrapRegressor
    from crepes.extras import DifficultyEstimator

    x, x_test = rows.encoded()
    forest = RandomForestRegressor(500, oob_score=True, random_state=rows.seed)
    model = WrapRegressor(forest)
    model.fit(x, rows.y)
    difficulty = DifficultyEstimator()
    difficulty.fit(x, learner=model.learner, scaler=True, oob=True)
    model.calibrate(x, rows.y, de=difficulty, oob=True, cps=True, seed=rows.seed)
    lower, upper = 100 * LEVELS[LEVELS < 0.5], 100 * LEVELS[LEVELS > 0.5]
    quantiles = model.predict_percentiles(
        x_test, lower_percentiles=lower.tolist(), higher_percentiles=upper.tolist()
    ).T
    # Few rows leave the last quantiles infinite, where the nearest finite one stands.
    known = np.where(np.isfinite(quantiles), quantiles, np.nan)
    quantiles = np.clip(quantiles, np.nanmin(known, axis=0), np.nanmax(known, axis=0))
    return {
        "mean": model.predict(x_test),
        "quantiles": quantiles,
        "interval": model.predict_int(x_test, confidence=COVERAGE).T,
    }


def bde(rows, members=8, epochs=200, warmup_steps=5000, samples=2000):
    """Bayesian deep ensembles, sampled by MILE.

    The settings are those of the library's own example of regression.
    """
    # One device samples all members: version 1.0.2 fails on several with JAX 0.10.
    # JAX reads the variable when it is imported.
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=1"
    from bde import BdeRegressor
    from bde.loss import GaussianNLL

    x, x_test = (inputs.astype("float32") for inputs in rows.encoded())
    shift, scale = rows.y.mean(), rows.y.std()
    model = BdeRegressor(
        hidden_layers=[16, 16],
        n_members=members,
        seed=rows.seed,
        loss=GaussianNLL(),
        epochs=epochs,
        validation_split=0.15,
        lr=1e-3,
        weight_decay=1e-4,
        warmup_steps=warmup_steps,
        n_samples=samples,
        n_thinning=2,
        patience=10,
    )
    model.fit(x=x, y=((rows.y - shift) / scale).astype("float32"))
    # [members, draws, rows, 2]
    raw = np.asarray(model.predict(x_test, raw=True), dtype="float64")
    raw = raw.reshape(-1, *raw.shape[2:])
    raw = raw[:: max(len(raw) // 400, 1)]
    # The scale of the library's likelihood.
    stddevs = np.logaddexp(raw[..., 1], 0.0) + 1e-6
    return {"means": shift + scale * raw[..., 0], "stddevs": scale * stddevs}


def realmlp(rows):
    """RealMLP at its tuned defaults (Holzmüller et al. 2024), of quantiles."""
    from pytabkit import RealMLP_TD_Classifier, RealMLP_TD_Regressor

    return pytabkit(rows, RealMLP_TD_Classifier, RealMLP_TD_Regressor)


def tabm(rows):
    """TabM at its defaults (Gorishniy et al. 2025), of quantiles."""
    from pytabkit import TabM_D_Classifier, TabM_D_Regressor

    return pytabkit(rows, TabM_D_Classifier, TabM_D_Regressor)


def pytabkit(rows, classifier, regressor):
    """Fits a model at its defaults: a fifth of the rows stops it."""
    x, x_test = (inputs.astype("float32") for inputs in rows.encoded())
    options = {"random_state": rows.seed, "device": "cpu"}
    if rows.classes is not None:
        metric = {"val_metric_name": "cross_entropy"}
        model = classifier(**options, **metric).fit(x, rows.y)
        return {"probabilities": model.predict_proba(x_test)}
    loss = f"multi_pinball({','.join(f'{level:.3f}' for level in LEVELS)})"
    model = regressor(train_metric_name=loss, val_metric_name=loss, **options)
    quantiles = np.sort(model.fit(x, rows.y).predict(x_test).T, axis=0)
    return {"mean": quantiles.mean(axis=0), "quantiles": quantiles}


# Each method with the library that gives it.
METHODS = {
    "constant": (constant, "numpy"),
    "linear": (linear, "scikit-learn"),
    "random_forest": (random_forest, "scikit-learn"),
    "ngboost": (ngboost, "ngboost"),
    "ngboost_tuned": (ngboost_tuned, "ngboost"),
    "catboost": (catboost, "catboost"),
    "catboost_tuned": (catboost_tuned, "catboost"),
    "quantile_forest": (quantile_forest, "quantile-forest"),
    "crepes": (crepes, "crepes"),
    "realmlp": (realmlp, "pytabkit"),
    "tabm": (tabm, "pytabkit"),
    "sklearn-contrib-bde": (bde, "sklearn-contrib-bde"),
}


def tune(rows, candidates, fit, folds):
    """Returns a candidate of the least loss of folds, and its mean number of trees."""
    found = []
    for candidate in candidates:
        losses, sizes, scaled = zip(
            *(fit(candidate, *parts) for parts in rows.folds(folds)), strict=True
        )
        options = {**candidate, "rounds": int(np.ceil(np.mean(sizes)))}
        found.append((np.mean(losses), options, scaled))
    _, options, scaled = min(found, key=lambda each: each[0])
    return options, None if scaled[0] is None else np.concatenate(scaled)


def with_conformal_interval(found, scaled):
    """Adds cross-conformal intervals: as many deviations as cover the rows of folds."""
    if scaled is None:
        return found
    place = min(int(np.ceil(COVERAGE * (len(scaled) + 1))), len(scaled))
    mean = found["means"].mean(axis=0)
    variance = (found["stddevs"] ** 2 + found["means"] ** 2).mean(axis=0) - mean**2
    reach = np.sort(scaled)[place - 1] * np.sqrt(variance)
    return {**found, "interval": np.stack([mean - reach, mean + reach])}


def normals(means, stddevs):
    """Returns one normal distribution for each row."""
    return {
        "means": means[None],
        "stddevs": np.broadcast_to(stddevs, means.shape)[None],
    }


def held_out_tenth(rows, seed):
    """Returns a tenth of the rows, and the others."""
    order = np.random.default_rng(seed).permutation(len(rows.y))
    return np.split(order, [max(len(order) // 10, 1)])


def text_columns(frame):
    """Returns the columns that pandas took for text or booleans."""
    return [name for name in frame if frame[name].dtype.kind not in "iuf"]


def encoder(frame):
    """Returns a transformer of columns to numbers."""
    texts = text_columns(frame)
    numbers = [name for name in frame if name not in texts]
    return make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (
            OneHotEncoder(
                handle_unknown="ignore", max_categories=50, sparse_output=False
            ),
            texts,
        ),
    )


if __name__ == "__main__":
    main()
