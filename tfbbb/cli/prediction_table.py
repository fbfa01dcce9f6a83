"""Predictions of an exported model as a table."""

import sys
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import track

from tfbbb.export.exported_model import ExportedModel

_ROWS_AT_ONCE = 2048


def predict_table(
    model: ExportedModel,
    inputs: Mapping[str, np.ndarray],
    *,
    num_samples: int | None = None,
    seed: int | None = None,
    level: float = 0.9,
) -> pa.Table:
    """Predicts rows in blocks, with a progress bar where that takes longer.

    Args:
        model: The model.
        inputs: Columns `[n]` by name.
        num_samples: Draws per row; the model's own number by default.
        seed: Seed of the draws; the model's own by default.
        level: Probability of the interval from `lower` to `upper`.

    Returns:
        One row per row. Numbers have the columns `mean`, `standard_deviation`,
        `epistemic_variance`, `aleatoric_variance`, `lower` and `upper` (numbered from
        1 if there are several targets); classes have `class`, `probability_CLASS`
        each, `entropy` and `mutual_information`.
    """
    num_rows = len(next(iter(inputs.values())))
    starts = range(0, num_rows, _ROWS_AT_ONCE)
    blocks = []
    for start in track(
        starts,
        description="rows",
        console=Console(file=sys.stderr),
        transient=True,
        disable=len(starts) == 1,
    ):
        block = {
            name: values[start : start + _ROWS_AT_ONCE]
            for name, values in inputs.items()
        }
        if (classes := model.manifest.classes) is None:
            blocks.append(_numbers(model, block, num_samples, seed, level))
        else:
            answers = model.predict(block, num_samples, seed)
            blocks.append(_classes(classes, answers))
    return pa.concat_tables(blocks)


def _numbers(
    model: ExportedModel,
    inputs: Mapping[str, np.ndarray],
    num_samples: int | None,
    seed: int | None,
    level: float,
) -> pa.Table:
    moments = model.predict(inputs, num_samples, seed)
    bounds = model.quantiles(
        inputs, [0.5 - level / 2, 0.5 + level / 2], num_samples, seed
    )
    answers = {
        "mean": moments["mean"],
        "standard_deviation": np.sqrt(moments["variance"]),
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


def _classes(names: Sequence[str], answers: Mapping[str, np.ndarray]) -> pa.Table:
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
