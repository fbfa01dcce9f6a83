"""Models that a user would pick for a table, on a file as it is.

    python fit_table.py INPUT.npz OUTPUT.npz

Reads `method`, `train` and `test` (paths of CSV files), `separator`, `decimal`,
`target`, `task` and `seed`. Of numbers, writes `means` and `stddevs` [members, rows];
of classes, `probabilities` [rows, classes] and `classes`; and `seconds` and `versions`.

Cells are what pandas takes them for. Missing numbers get the median, texts indicators
of their fifty most frequent values; CatBoost takes both as they are. The noise of a
forest is that of its out-of-bag rows, of a linear model that of its residuals. All are
at their defaults, but for `catboost_tuned`, the best of `CANDIDATES` by its loss of
three folds. `constant` knows the targets alone.
"""

import sys
import time
from importlib import metadata

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier, CatBoostRegressor
from ngboost import NGBClassifier, NGBRegressor
from ngboost.distns import k_categorical
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

LIBRARIES = ("catboost", "ngboost", "scikit-learn", "pandas")
MEMBERS = 5
CANDIDATES = [
    {"depth": depth, "learning_rate": rate, "l2_leaf_reg": penalty}
    for depth in (4, 6, 8)
    for rate, penalty in ((0.03, 3.0), (0.03, 10.0), (0.1, 3.0))
]
FOLDS, MOST_TREES, PATIENCE = 3, 1000, 50


def main() -> None:
    """Fits and predicts."""
    given = {k: v.item() for k, v in np.load(sys.argv[1]).items()}
    start = time.perf_counter()
    options = {"sep": given["separator"], "decimal": given["decimal"]}
    train, test = (pd.read_csv(given[name], **options) for name in ("train", "test"))
    y = train.pop(given["target"])
    texts = text_columns(train)
    train, test = (
        frame[train.columns]
        .astype(dict.fromkeys(texts, object))
        .fillna(dict.fromkeys(texts, ""))
        .astype(dict.fromkeys(texts, str))
        for frame in (train, test)
    )
    found = (
        classify(given["method"], train, y.astype(str), test, given["seed"])
        if given["task"] == "classification"
        else regress(given["method"], train, as_numbers(y), test, given["seed"])
    )
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in LIBRARIES)
    seconds = time.perf_counter() - start
    np.savez(sys.argv[2], **found, seconds=seconds, versions=versions)


def as_numbers(y):
    """A target such as $1,204.50 is no number to pandas: its user would strip it."""
    if y.dtype.kind in "iuf":
        return y.to_numpy(float)
    return pd.to_numeric(y.str.replace(r"[$,%]", "", regex=True)).to_numpy(float)


def regress(method, train, y, test, seed):
    """Returns means and standard deviations."""
    if method == "constant":
        answer = (1, len(test))
        return {"means": np.full(answer, y.mean()), "stddevs": np.full(answer, y.std())}
    if method.startswith("catboost"):
        options = {
            "loss_function": "RMSEWithUncertainty",
            "cat_features": text_columns(train),
            "verbose": False,
            "allow_writing_files": False,
        }
        if method == "catboost_tuned":
            options |= tune(CatBoostRegressor, options, train, y, seed)
        answers = [
            CatBoostRegressor(random_seed=1000 * seed + member, **options)
            .fit(train, y)
            .predict(test)
            for member in range(MEMBERS)
        ]
        means, variances = np.moveaxis(np.array(answers), -1, 0)
        return {"means": means, "stddevs": np.sqrt(variances)}
    features = encoder(train).fit(train)
    x, x_test = features.transform(train), features.transform(test)
    if method == "ngboost":
        model = NGBRegressor(random_state=seed, verbose=False).fit(x, y)
        found = model.pred_dist(x_test).params
        return {"means": found["loc"][None], "stddevs": found["scale"][None]}
    if method == "random_forest":
        model = RandomForestRegressor(oob_score=True, random_state=seed).fit(x, y)
        residuals = y - model.oob_prediction_
    else:
        model = RidgeCV(np.geomspace(1e-3, 1e4, 15)).fit(x, y)
        residuals = y - model.predict(x)
    means = model.predict(x_test)
    return {"means": means[None], "stddevs": np.full((1, len(means)), residuals.std())}


def classify(method, train, y, test, seed):
    """Returns probabilities."""
    classes, codes = np.unique(y, return_inverse=True)
    if method == "constant":
        shares = np.bincount(codes) / len(codes)
        return {
            "probabilities": np.tile(shares, (len(test), 1)),
            "classes": classes.astype(str),
        }
    if method.startswith("catboost"):
        x, x_test = train, test
        options = {
            "cat_features": text_columns(train),
            "random_seed": seed,
            "verbose": False,
            "allow_writing_files": False,
        }
        if method == "catboost_tuned":
            options |= tune(CatBoostClassifier, options, train, codes, seed)
        model = CatBoostClassifier(**options)
    else:
        features = encoder(train).fit(train)
        x, x_test = features.transform(train), features.transform(test)
        if method == "ngboost":
            distribution = k_categorical(len(classes))
            model = NGBClassifier(Dist=distribution, random_state=seed, verbose=False)
        elif method == "random_forest":
            model = RandomForestClassifier(random_state=seed)
        else:
            model = LogisticRegression(max_iter=5000)
    probabilities = model.fit(x, codes).predict_proba(x_test)
    return {"probabilities": probabilities, "classes": classes.astype(str)}


def tune(kind, options, train, y, seed):
    """Returns the candidate, with its number of trees, of the least loss of folds."""
    folds = np.array_split(np.random.default_rng(seed).permutation(len(y)), FOLDS)
    found = []
    for candidate in CANDIDATES:
        losses, trees = [], []
        for fold in folds:
            rest = np.setdiff1d(np.arange(len(y)), fold)
            if y.dtype.kind in "iu":
                # CatBoost ends at a class that it did not learn.
                fold = fold[np.isin(y[fold], y[rest])]
            model = kind(
                iterations=MOST_TREES,
                early_stopping_rounds=PATIENCE,
                **options,
                **candidate,
            )
            held_out = (train.iloc[fold], y[fold])
            model.fit(train.iloc[rest], y[rest], eval_set=held_out)
            losses += model.get_best_score()["validation"].values()
            trees.append(model.tree_count_)
        iterations = int(np.ceil(np.mean(trees)))
        found.append((np.mean(losses), {**candidate, "iterations": iterations}))
    return min(found, key=lambda pair: pair[0])[1]


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
