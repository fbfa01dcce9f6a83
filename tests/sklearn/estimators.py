"""Small data, and estimators that train in a second or two."""

import functools

import numpy as np
import pandas as pd

from tests.repeated_calls import running_functions
from tfbbb.sklearn import BayesianClassifier, BayesianRegressor

# One posterior of few units, on the schedule of one temperature.
QUICK = {
    "members": 1,
    "hidden_units": (8,),
    "steps": 150,
    "learning_rate": 0.05,
    "kl_schedule": {"name": "tempered", "temperature": 0.1},
    "recalibration": "none",
    "num_samples": 20,
}
# One step of a linear network, where only the way in and out counts.
SHORTEST = {"hidden_units": (), "steps": 1}


def regressor(**parameters):
    # A given likelihood leaves the recipe none to compare.
    return BayesianRegressor(**{**QUICK, "likelihood": "normal", **parameters})


def classifier(**parameters):
    return BayesianClassifier(**{**QUICK, **parameters})


@running_functions(eagerly=False)
def compiled_fit(model, *rows, **options):
    """Fits with compiled functions, in files whose other fits are of few steps."""
    return model.fit(*rows, **options)


def line(rows=120, noise=0.1, seed=0):
    """Two features, of which the first counts."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, 2))
    return x, 3.0 * x[:, 0] + noise * generator.normal(size=rows) + 10.0


@functools.cache
def regressor_of_line():
    """The regressor that several files of tests ask."""
    return compiled_fit(regressor(), *line())


@functools.cache
def regressor_of_houses():
    """The regressor of texts and missing values that several files of tests ask."""
    return compiled_fit(regressor(), *houses())


def houses(rows=120, seed=0):
    """Numbers, texts and missing values of both, as people have them."""
    generator = np.random.default_rng(seed)
    area = generator.uniform(30, 250, rows)
    street = generator.choice(["mill lane", "park road"], rows)
    price = area + 50.0 * (street == "park road") + generator.normal(0, 5, rows)
    frame = pd.DataFrame({"area": area, "street": street})
    for column in frame.columns:
        frame.loc[generator.choice(rows, rows // 8, replace=False), column] = None
    return frame, pd.Series(price, name="price")
