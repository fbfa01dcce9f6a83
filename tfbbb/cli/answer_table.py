"""Predictions as a table, one row per predicted row."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa


def numbers_table(
    moments: Mapping[str, np.ndarray],
    bounds: Mapping[str, np.ndarray],
    log_prob: np.ndarray | None = None,
) -> pa.Table:
    """Builds the table of predictions of a regression."""
    ends = {
        f"{end}_{name}".rstrip("_"): both[:, place]
        for name, both in bounds.items()
        for place, end in enumerate(("lower", "upper"))
    }
    answers = {
        "mean": moments["mean"],
        "standard_deviation": np.sqrt(moments["variance"], dtype=np.float32),
        "epistemic_variance": moments["epistemic"],
        "aleatoric_variance": moments["aleatoric"],
        **ends,
    }
    num_targets = moments["mean"].shape[1]
    return pa.table(
        {
            name if num_targets == 1 else f"{name}_{target + 1}": values[:, target]
            for target in range(num_targets)
            for name, values in answers.items()
        }
        | _familiarity(moments)
        | ({} if log_prob is None else {"log_prob": log_prob})
    )


def classes_table(
    names: Sequence[str],
    answers: Mapping[str, np.ndarray],
    sets: Sequence[Sequence[str] | None] | None = None,
    log_prob: np.ndarray | None = None,
) -> pa.Table:
    """Builds the table of predictions of a classification."""
    probabilities = answers["probabilities"]
    return pa.table(
        {
            "class": pa.array(
                [
                    None if np.isnan(row).any() else names[row.argmax()]
                    for row in probabilities
                ],
                pa.string(),
            ),
            **{
                f"probability_{name}": probabilities[:, index]
                for index, name in enumerate(names)
            },
            "entropy": answers["entropy"],
            "mutual_information": answers["mutual_information"],
        }
        | _familiarity(answers)
        | ({} if sets is None else {"prediction_set": _as_json(sets)})
        | ({} if log_prob is None else {"log_prob": log_prob})
    )


def _familiarity(answers: Mapping[str, np.ndarray | None]) -> dict[str, np.ndarray]:
    found = answers.get("familiarity")
    return {} if found is None else {"familiarity": found}


def with_warnings(predictions: pa.Table, warnings: Sequence[Sequence[str]]) -> pa.Table:
    """Adds the column `warnings` to predictions if any row has a warning."""
    if not any(warnings):
        return predictions
    return with_warning_texts(predictions, warnings)


def with_warning_texts(
    predictions: pa.Table, warnings: Sequence[Sequence[str]] | None
) -> pa.Table:
    """Adds the column `warnings`, which is empty in rows without one."""
    warnings = warnings or [()] * len(predictions)
    texts = pa.array([" ".join(sentences) for sentences in warnings], pa.string())
    return predictions.append_column("warnings", texts)


def _as_json(sets: Sequence[Sequence[str] | None]) -> pa.Array:
    texts = [
        None if names is None else json.dumps(list(names), ensure_ascii=False)
        for names in sets
    ]
    return pa.array(texts, pa.string())
