"""The models of the golden files: small, trained for a moment, and of every kind."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pyarrow as pa

import tfbbb
from tfbbb.layers import DenseVariational
from tfbbb.tables import Schema, preprocessing

NUM_ROWS = 24


def columns() -> tuple[tfbbb.BayesianModel, dict[str, Any]]:
    """A regression of columns: numbers, some of them missing, and categories."""
    generator = np.random.default_rng(0)
    age = generator.uniform(20, 80, NUM_ROWS)
    pressure = [None if i % 5 == 0 else 100.0 + i for i in range(NUM_ROWS)]
    region = generator.choice(["north", "south"], NUM_ROWS)
    target = 3.0 * age + 20.0 * (region == "north") + generator.normal(size=NUM_ROWS)
    table = pa.table(
        {"age": age, "blood pressure": pressure, "region": region, "cost": target}
    )
    schema = Schema.infer(table, "cost")
    keras.utils.set_random_seed(1)
    inputs, features = preprocessing(schema)
    model = tfbbb.BayesianModel(inputs, _network(features, 1))
    _train(model, schema.inputs(table), schema.targets(table))
    return model, {"schema": schema}


def classes() -> tuple[tfbbb.BayesianModel, dict[str, Any]]:
    """A classification of a matrix, with weights that are drawn."""
    x = _matrix()
    keras.utils.set_random_seed(2)
    inputs = keras.Input((3,))
    model = tfbbb.BayesianModel(inputs, _network(inputs, 3), likelihood="categorical")
    _train(model, x, x.argmax(axis=1))
    return model, {"classes": ["low", "middle", "high"], "method": "weight"}


def ensemble() -> tuple[tfbbb.BayesianModel, dict[str, Any]]:
    """A regression by two members, whose noise differs from row to row."""
    x = _matrix()
    targets = np.stack([x[:, 0] * 10.0, x[:, 1] + x[:, 2]], axis=1)
    keras.utils.set_random_seed(3)
    inputs = keras.Input((3,))
    likelihood = tfbbb.likelihoods.Normal(heteroscedastic=True)
    model = tfbbb.BayesianModel(
        inputs, _network(inputs, 4), likelihood=likelihood, members=2
    )
    _train(model, x, targets)
    return model, {"target": "both", "feature_names": ["a", "b", "c"]}


RECIPES: dict[str, Callable[[], tuple[tfbbb.BayesianModel, dict[str, Any]]]] = {
    "columns": columns,
    "classes": classes,
    "ensemble": ensemble,
}


def rows_of(name: str) -> Any:
    """Returns the rows that a golden model is asked of."""
    if name == "columns":
        return {
            "age": [30.0, 55.5, 71.0],
            "blood pressure": [None, 110.0, 95.0],
            "region": ["north", "south", "elsewhere"],
        }
    return _matrix()[:3].tolist()


def _matrix() -> np.ndarray:
    generator = np.random.default_rng(4)
    return generator.normal(size=(NUM_ROWS, 3)).astype("float32")


def _network(features: Any, units: int) -> Any:
    return DenseVariational(units)(DenseVariational(4, "tanh")(features))


def _train(model: tfbbb.BayesianModel, x: Any, y: Any) -> None:
    model.compile(tfbbb.optimizers.Adam(0.05))
    model.fit(x, y, epochs=20, batch_size=NUM_ROWS, verbose=0)
