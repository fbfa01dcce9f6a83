"""Two small trainings of the default recipe, of numbers and of classes."""

import numpy as np
import pyarrow as pa
import pytest

from tests.trained import trained_table

ROWS = 200
SLOPE, NOISE = 3.0, 1.0
SMALL = {"hidden_units": [16], "members": 4}


def columns():
    generator = np.random.default_rng(0)
    x = generator.normal(size=ROWS)
    word = generator.choice(["a", "b"], size=ROWS)
    return x, word, SLOPE * x + NOISE * generator.normal(size=ROWS)


@pytest.fixture(scope="module")
def of_numbers():
    """Members leave out folds of all rows but those without a target."""
    x, word, y = columns()
    table = pa.table({"x": x, "word": word, "y": y, "empty": [None] * ROWS})
    y[:5] = np.nan
    table = table.set_column(2, "y", pa.array(y, from_pandas=True))
    training = {"epochs": 30}
    return trained_table(table, {"target": "y", "training": training, "model": SMALL})


@pytest.fixture(scope="module")
def kinds():
    x, word, y = columns()
    kind = np.where(y > 0, "above", "below")
    is_new = np.where(y > 1, "ja", "nein")
    return pa.table({"x": x, "word": word, "new": is_new, "kind": kind})


@pytest.fixture(scope="module")
def of_classes(kinds):
    """A tenth of the rows is held out."""
    training = {"epochs": 30, "validation": {"fraction": 0.1}}
    spec = {"target": "kind", "training": training, "model": SMALL}
    return trained_table(kinds, spec)
