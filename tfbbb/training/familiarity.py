"""The familiarity of rows, and what widens unfamiliar ones, of a table's model."""

from collections.abc import Mapping

import numpy as np

from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.familiarity import Extrapolation, Familiarity
from tfbbb.prediction.familiarity.familiarity import (
    LEAST_ROWS,
    MOST_REPRESENTATIVES,
)
from tfbbb.prediction.row_encoding import MOST_COLUMNS
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
    places = _some_places(rows.num_rows, seed)
    inputs, _ = rows.at(places)
    if isinstance(inputs, Mapping):
        inputs = {column.name: inputs[column.name] for column in compared}
    return Familiarity.fit(inputs, seed=seed)


def fit_extrapolation(
    familiarity: Familiarity, likelihood: Likelihood, rows: BatchSource, seed: int = 0
) -> Extrapolation | None:
    """Fits what widens predictions beyond the training rows; None where nothing does.

    Args:
        familiarity: What `fit_familiarity` returned.
        likelihood: The likelihood of the model.
        rows: The training rows.
        seed: Seed of the choice of rows, as it was, and of blocks that are left out.
    """
    _, targets = rows.at(_some_places(rows.num_rows, seed))
    return Extrapolation.fit(familiarity, likelihood, np.asarray(targets), seed=seed)


def describe_extrapolation(extrapolation: Extrapolation | None) -> list[str]:
    """Returns what the blocks said, as a sentence, if predictions are widened."""
    if extrapolation is None or extrapolation.trial is None:
        return []
    trial = extrapolation.trial
    without, covered = (
        f"{100.0 * trial[name]:.0f} %"
        for name in ("coverage_90_without", "coverage_90")
    )
    if without == covered:
        return [
            "Beyond the training rows, 90 % intervals hardly widen: in "
            f"{trial['blocks']} blocks of rows that were left out, they would cover "
            f"{covered} of the targets that a random forest predicts, widened or not."
        ]
    return [
        f"Beyond the training rows, 90 % intervals are wider: in {trial['blocks']} "
        "blocks of rows that were left out, intervals as wide as elsewhere would cover "
        f"{without} of the targets that a random forest predicts, and wider ones "
        f"{covered}."
    ]


def _some_places(num_rows: int, seed: int) -> np.ndarray:
    """Returns the indices of the rows to choose representatives from, in order."""
    if num_rows <= MOST_REPRESENTATIVES:
        return np.arange(num_rows)
    generator = np.random.default_rng(seed)
    return np.sort(generator.choice(num_rows, MOST_REPRESENTATIVES, replace=False))
