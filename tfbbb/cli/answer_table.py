"""Predictions as a table, one row per predicted row."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa


def interval_levels(level: float) -> list[float]:
    """Returns the quantile levels at the ends of a central interval."""
    return [0.5 - level / 2, 0.5 + level / 2]


def numbers_table(moments: Mapping[str, np.ndarray], bounds: np.ndarray) -> pa.Table:
    """Builds the table of predictions of a regression.

    Args:
        moments: `mean`, `variance`, `epistemic` and `aleatoric` [n, k].
        bounds: Lower and upper end of the interval [n, 2, k].

    Returns:
        The columns `mean`, `standard_deviation`, `epistemic_variance`,
        `aleatoric_variance`, `lower` and `upper`. With several targets, each name
        ends in the number of its target, counted from 1.
    """
    answers = {
        "mean": moments["mean"],
        "standard_deviation": np.sqrt(moments["variance"], dtype=np.float32),
        "epistemic_variance": moments["epistemic"],
        "aleatoric_variance": moments["aleatoric"],
        "lower": bounds[:, 0],
        "upper": bounds[:, 1],
    }
    num_targets = moments["mean"].shape[1]
    return pa.table(
        {
            name if num_targets == 1 else f"{name}_{target + 1}": values[:, target]
            for target in range(num_targets)
            for name, values in answers.items()
        }
    )


def classes_table(names: Sequence[str], answers: Mapping[str, np.ndarray]) -> pa.Table:
    """Builds the table of predictions of a classification.

    Args:
        names: Names of the classes.
        answers: `probabilities` [n, c], `entropy` and `mutual_information` [n].

    Returns:
        The columns `class`, one `probability_CLASS` per class, `entropy` and
        `mutual_information`.
    """
    probabilities = answers["probabilities"]
    return pa.table(
        {
            "class": [names[index] for index in probabilities.argmax(axis=1)],
            **{
                f"probability_{name}": probabilities[:, index]
                for index, name in enumerate(names)
            },
            "entropy": answers["entropy"],
            "mutual_information": answers["mutual_information"],
        }
    )
