"""The familiarity of rows for the model of a table."""

from collections.abc import Mapping

import numpy as np

from tfbbb.prediction.familiarity import Familiarity
from tfbbb.prediction.familiarity.familiarity import (
    LEAST_ROWS,
    MOST_COLUMNS,
    MOST_REPRESENTATIVES,
)
from tfbbb.tables import Schema
from tfbbb.tables.memory_rows import BatchSource


def fit_familiarity(
    rows: BatchSource, schema: Schema, seed: int = 0
) -> Familiarity | None:
    """Fits the familiarity of rows to training rows; None if it cannot be fitted.

    It needs 20 rows and at most 1250 columns. Columns of hashed texts are not compared:
    most of their values occur once.

    Args:
        rows: The training rows.
        schema: Their schema.
        seed: Seed of the choice of the rows that represent them.
    """
    compared = [column for column in schema.features if not column.buckets]
    if rows.num_rows < LEAST_ROWS or not 0 < len(compared) <= MOST_COLUMNS:
        return None
    places = np.arange(rows.num_rows)
    if rows.num_rows > MOST_REPRESENTATIVES:
        generator = np.random.default_rng(seed)
        places = generator.choice(rows.num_rows, MOST_REPRESENTATIVES, replace=False)
    inputs, _ = rows.at(np.sort(places))
    if isinstance(inputs, Mapping):
        inputs = {column.name: inputs[column.name] for column in compared}
    return Familiarity.fit(inputs, seed=seed)
