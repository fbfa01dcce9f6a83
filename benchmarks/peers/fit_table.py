"""The models that a user would pick for a table, by the names of `METHODS`.

    python fit_table.py INPUT.npz OUTPUT.npz

Reads `method`, `task`, `seed`, the rows, and the options of the method. The rows are
`x_train`, `y_train` and `x_test`, or `train` and `test`, paths of CSV files with the
column `target`. Writes `seconds`, `versions` and

- of classes, `probabilities` [rows, classes] and `classes`;
- of numbers, a density as `means` and `stddevs` [members, rows];
- of a method with intervals beside its density, `interval` [2, rows], of 90 %.

Cells are what pandas takes them for. Missing numbers get the median, texts indicators
of their fifty most frequent values; CatBoost takes both as they are. Methods without
`tuned` in their names have the defaults of their libraries.
"""

import itertools
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

COVERAGE = 0.9
_RATES_AND_PENALTIES = ((0.03, 3.0), (0.03, 10.0), (0.1, 3.0))
THREADS = int(os.environ.get("OMP_NUM_THREADS", "-1"))
_ROWS = ("x_train", "y_train", "x_test", "train", "test")
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
        train, test = (pd.read_csv(given[name]) for name in ("train", "test"))
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


def catboost(rows, rounds, patience=None, members=None, **options):
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
    """CatBoost with the best of nine candidates, and cross-conformal intervals."""
    best = None
    for depth, (rate, penalty) in itertools.product((4, 6, 8), _RATES_AND_PENALTIES):
        candidate = {"depth": depth, "learning_rate": rate, "l2_leaf_reg": penalty}
        losses, sizes, scaled = [], [], []
        for rest, fold in rows.folds(folds):
            model = catboost_model(
                rows, iterations=rounds, early_stopping_rounds=patience, **candidate
            )
            fit_catboost(model, rows, rest, fold)
            losses += model.get_best_score()["validation"].values()
            sizes.append(model.tree_count_)
            if rows.classes is None:
                mean, variance = model.predict(rows.train.iloc[fold]).T
                scaled += (np.abs(rows.y[fold] - mean) / variance**0.5).tolist()
        loss = np.mean(losses)
        if best is None or loss < best[0]:
            best = loss, {**candidate, "rounds": int(np.ceil(np.mean(sizes)))}, scaled
    _, options, scaled = best
    found = catboost(rows, **options)
    return with_conformal_interval(found, scaled) if scaled else found


def with_conformal_interval(found, scaled):
    """Adds intervals of as many deviations as cover the rows of the folds."""
    place = min(int(np.ceil(COVERAGE * (len(scaled) + 1))), len(scaled))
    mean = found["means"].mean(axis=0)
    variance = (found["stddevs"] ** 2 + found["means"] ** 2).mean(axis=0) - mean**2
    reach = np.sort(scaled)[place - 1] * np.sqrt(variance)
    return {**found, "interval": np.stack([mean - reach, mean + reach])}


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


def ngboost(rows, rounds, patience):
    """Normal distributions; a tenth of the rows stops the rounds."""
    from ngboost import NGBRegressor

    x, x_test = rows.encoded()
    held_out, rest = held_out_tenth(rows, rows.seed)
    model = NGBRegressor(
        Base=DecisionTreeRegressor(criterion="friedman_mse", max_depth=3),
        n_estimators=rounds,
        random_state=rows.seed,
        verbose=False,
    )
    model.fit(
        x[rest],
        rows.y[rest],
        X_val=x[held_out],
        Y_val=rows.y[held_out],
        early_stopping_rounds=patience,
    )
    # The best iteration is counted from 0.
    best = model.best_val_loss_itr
    found = model.pred_dist(x_test, max_iter=None if best is None else best + 1).params
    return normals(found["loc"], found["scale"])


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


# Each method with the library that gives it.
METHODS = {
    "constant": (constant, "numpy"),
    "linear": (linear, "scikit-learn"),
    "random_forest": (random_forest, "scikit-learn"),
    "ngboost": (ngboost, "ngboost"),
    "catboost": (catboost, "catboost"),
    "catboost_tuned": (catboost_tuned, "catboost"),
    "sklearn-contrib-bde": (bde, "sklearn-contrib-bde"),
}


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
