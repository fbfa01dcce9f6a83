"""The other libraries of the benchmarks of tables: `peers/fit_table.py`."""

from typing import Any

import numpy as np
from environments import Peer
from scores import MixtureOfNormals, class_scores, distribution_scores

_TREES = Peer(
    "fit_table",
    ("catboost==1.2.10", "ngboost==0.5.11", "pandas==2.3.3", "scikit-learn==1.7.2"),
)
_JAX = Peer("fit_table", ("sklearn-contrib-bde==1.0.2", "pandas==2.3.3"))
# Each method with its environment: libraries that do not go together have their own.
PEERS = {
    **dict.fromkeys(("ngboost", "catboost", "catboost_tuned"), _TREES),
    "sklearn-contrib-bde": _JAX,
    **dict.fromkeys(("random_forest", "linear", "constant"), _TREES),
}


def fit_and_score(
    method: str, y: np.ndarray, *, whole_numbers: bool = False, **inputs: Any
) -> dict[str, Any]:
    """Fits a method in its environment; returns its scores, seconds and versions.

    The inputs are those of `peers/fit_table.py`; y are the targets of the test rows.
    """
    found = PEERS[method].run(method=method, **inputs)
    if inputs["task"] == "classification":
        scores = class_scores(found["probabilities"], found["classes"], y)
    else:
        mixture = MixtureOfNormals(found["means"], found["stddevs"])
        scores = distribution_scores(
            mixture, y, whole_numbers=whole_numbers, interval=found.get("interval")
        )
    cost = {"seconds": float(found["seconds"]), "versions": str(found["versions"])}
    return {**scores, **cost}
