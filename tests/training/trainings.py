"""Small trainings that are made alike each time, as programs make them."""

import keras
import numpy as np
import pyarrow as pa

from tfbbb.layers import DenseVariational
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.optimizers import Adam
from tfbbb.tables import Schema, preprocessing
from tfbbb.tables.memory_rows import MemoryRows
from tfbbb.training.loop import fit

ROWS = 50
BATCH_SIZE = 8
STEPS_PER_EPOCH = 7


def table():
    generator = np.random.default_rng(0)
    x = generator.normal(size=ROWS)
    x[3] = np.nan
    words = generator.choice(["a", "b", ""], size=ROWS)
    y = np.nan_to_num(x) + (words == "b") + 0.1 * generator.normal(size=ROWS)
    return pa.table({"x": x, "word": words, "y": y})


SCHEMA = Schema.infer(table(), "y")


def rows():
    return MemoryRows.read(SCHEMA, [table()], ROWS)


def held_out():
    return SCHEMA.inputs(table()), SCHEMA.targets(table())


def model(members=1, learning_rate=0.05, **options):
    inputs, features = preprocessing(SCHEMA)
    outputs = DenseVariational(1, kernel_initializer="zeros", seed=7)(features)
    model = BayesianModel(inputs, outputs, likelihood="normal", members=members)
    schedule = keras.optimizers.schedules.CosineDecay(learning_rate, 100)
    model.compile(Adam(schedule), **options)
    return model


def train(model, **options):
    given = {"epochs": 4, "batch_size": BATCH_SIZE, "seed": 3, **options}
    return fit(model, given.pop("rows", None) or rows(), **given)


def state(model):
    """All that a training leaves behind, but for counts of metrics."""
    variables = [*model.weights, *model.optimizer.variables]
    return [variable.numpy() for variable in variables]


def assert_same(model, other):
    for value, expected in zip(state(model), state(other), strict=True):
        np.testing.assert_array_equal(value, expected)
