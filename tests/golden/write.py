"""Writes golden files of the present schema version, with the answers they gave.

    PYTHONPATH=. python tests/golden/write.py

They go to `tests/golden/VERSION/`, which must not be there: golden files are written
once for each schema version.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

import tfbbb
from tests.golden.recipes import RECIPES, rows_of
from tfbbb.export.manifest import SCHEMA_VERSION

NUM_SAMPLES, SEED = 20, 3
LEVELS = [0.1, 0.5, 0.9]


def main() -> None:
    root = Path(__file__).parent / str(SCHEMA_VERSION)
    root.mkdir()
    for name, recipe in RECIPES.items():
        model, description = recipe()
        model.export_predictive(root / name, **description)
        answers = to_lists(answers_of(tfbbb.load(root / name), rows_of(name)))
        text = json.dumps({"rows": rows_of(name), "answers": answers}, indent=1)
        (root / f"{name}.json").write_text(text + "\n")


def answers_of(model: Any, rows: Any) -> dict[str, Any]:
    """Returns what a golden model says of some rows, by itself and by each method."""
    asked = (rows, NUM_SAMPLES, SEED)
    found = {"predict": model.predict(*asked)}
    if model.manifest.targets.ordered:
        found["quantiles"] = model.ask("quantiles", rows, LEVELS, NUM_SAMPLES, SEED)
    for method in model.manifest.passes:
        prediction = model.predictive(rows, NUM_SAMPLES, method, SEED)
        targets = prediction.mean
        if model.manifest.classes is not None:
            targets = targets.argmax(axis=-1)
        found[f"by {method}"] = {
            **prediction.to_numpy(),
            "log_prob": prediction.log_prob(targets),
            "log_prob_of_draws": prediction.log_prob_of_draws(targets),
            "joint_sample": prediction.joint_sample(3),
            "sample": prediction.sample(4),
        }
        if model.manifest.targets.ordered:
            found[f"by {method}"] |= {
                "quantile": prediction.quantile(LEVELS),
                "cdf": prediction.cdf(targets),
            }
    return found


def to_lists(answers: Any) -> Any:
    if isinstance(answers, dict):
        return {name: to_lists(values) for name, values in answers.items()}
    return np.asarray(answers).tolist()


if __name__ == "__main__":
    main()
