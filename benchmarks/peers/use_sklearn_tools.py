"""MAPIE and scikit-activeml around the estimators of `tfbbb.sklearn`.

    python use_sklearn_tools.py INPUT.npz OUTPUT.npz

Reads `root` (of this checkout), `steps`, `seed` and `rounds`; writes the coverage and
the mean width of 90 % intervals `coverage`, `width` of `names`, the accuracy after each
round of queries `by_entropy` and `by_chance`, the numbers of `labels`, and `versions`.
"""

import sys
from importlib import metadata

import numpy as np

given = np.load(sys.argv[1])
sys.path.insert(0, str(given["root"]))

from mapie.regression import CrossConformalRegressor, SplitConformalRegressor  # noqa: E402
from skactiveml.classifier import SklearnClassifier  # noqa: E402
from skactiveml.pool import RandomSampling, UncertaintySampling  # noqa: E402
from skactiveml.regressor import SklearnNormalRegressor  # noqa: E402
from skactiveml.utils import MISSING_LABEL  # noqa: E402
from sklearn.datasets import load_diabetes, load_wine  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402

from tfbbb.sklearn import BayesianClassifier, BayesianRegressor  # noqa: E402

SEED, STEPS = int(given["seed"]), int(given["steps"])
LEVEL, FIRST, PER_ROUND = 0.9, 12, 4


def main() -> None:
    """Measures intervals and learning curves."""
    intervals = intervals_by_name()
    y, low, high = intervals.pop("y")[0], *zip(*intervals.values(), strict=True)
    numbers, by_entropy = curve(UncertaintySampling(method="entropy"))
    _, by_chance = curve(RandomSampling())
    np.savez(
        sys.argv[2],
        names=list(intervals),
        coverage=[np.mean((a <= y) & (y <= b)) for a, b in zip(low, high, strict=True)],
        width=[np.mean(b - a) for a, b in zip(low, high, strict=True)],
        labels=numbers,
        by_entropy=by_entropy,
        by_chance=by_chance,
        versions=" ".join(
            f"{name} {metadata.version(name)}"
            for name in ("mapie", "scikit-activeml", "scikit-learn")
        ),
    )


def intervals_by_name() -> dict[str, tuple[np.ndarray, ...]]:
    """Returns lower and upper bounds of the test rows of diabetes, and their `y`."""
    x, x_test, y, y_test = train_test_split(
        *load_diabetes(return_X_y=True), random_state=SEED
    )
    model = BayesianRegressor(members=4, steps=STEPS)
    own = model.fit(x, y).predict_interval(x_test, LEVEL)
    half = len(x) * 3 // 4
    single = BayesianRegressor(members=1, steps=STEPS).fit(x[:half], y[:half])
    split = SplitConformalRegressor(single, LEVEL).conformalize(x[half:], y[half:])
    crossed = CrossConformalRegressor(
        BayesianRegressor(members=1, steps=STEPS), LEVEL, cv=5
    ).fit_conformalize(x, y)
    normal = SklearnNormalRegressor(BayesianRegressor(members=1, steps=STEPS))
    found = normal.fit(x, y).predict_target_distribution(x_test).interval(LEVEL)
    return {
        "tfbbb": tuple(own.T),
        "MAPIE, split": tuple(split.predict_interval(x_test)[1][:, :, 0].T),
        "MAPIE, cross": tuple(crossed.predict_interval(x_test)[1][:, :, 0].T),
        "scikit-activeml, normal": found,
        "y": (y_test,),
    }


def curve(strategy: object) -> tuple[list[int], list[float]]:
    """Returns numbers of labels, and the accuracy of the rows of wine after each."""
    x, truth = load_wine(return_X_y=True)
    random = np.random.default_rng(SEED)
    labels = np.full(len(x), MISSING_LABEL)
    first = random.permutation(len(x))[:FIRST]
    labels[first] = truth[first]
    model = SklearnClassifier(
        BayesianClassifier(members=1, steps=STEPS, random_state=SEED),
        classes=np.unique(truth),
        random_state=SEED,
    )
    numbers, accuracy = [], []
    for last in range(int(given["rounds"]), -1, -1):
        model.fit(x, labels)
        numbers.append(int(np.sum(~np.isnan(labels))))
        accuracy.append(float(np.mean(model.predict(x) == truth)))
        if last:
            options = {} if isinstance(strategy, RandomSampling) else {"clf": model}
            chosen = strategy.query(X=x, y=labels, batch_size=PER_ROUND, **options)
            labels[chosen] = truth[chosen]
    return numbers, accuracy


if __name__ == "__main__":
    main()
