"""The other libraries of the benchmarks of tables: `peers/fit_table.py`."""

from typing import Any

import numpy as np
from environments import Peer
from scores import EqualWeights, MixtureOfNormals, distribution_scores

_FRAMES = ("pandas==2.3.3", "scikit-learn==1.7.2")
_TREES = Peer(
    "fit_table",
    (
        *("catboost==1.2.10", "ngboost==0.5.11"),
        *("quantile-forest==1.4.2", "crepes==0.9.1", *_FRAMES),
    ),
)
_TORCH = Peer("fit_table", ("pytabkit==1.7.3", *_FRAMES))
_JAX = Peer("fit_table", ("sklearn-contrib-bde==1.0.2", "pandas==2.3.3"))
# Each method with its environment: libraries that do not go together have their own.
PEERS = {
    **dict.fromkeys(("ngboost", "ngboost_tuned"), _TREES),
    **dict.fromkeys(("catboost", "catboost_tuned"), _TREES),
    **dict.fromkeys(("quantile_forest", "crepes"), _TREES),
    **dict.fromkeys(("realmlp", "tabm"), _TORCH),
    "sklearn-contrib-bde": _JAX,
    **dict.fromkeys(("random_forest", "linear", "constant"), _TREES),
}
# What a user would pick, and which of these know numbers alone.
TUNED = (
    *("catboost_tuned", "ngboost_tuned", "quantile_forest", "crepes"),
    *("realmlp", "tabm", "sklearn-contrib-bde"),
)
_NUMBERS_ALONE = ("quantile_forest", "crepes", "sklearn-contrib-bde")


def knows(method: str, task: str) -> bool:
    """Returns whether a method learns this task."""
    return task == "regression" or method not in _NUMBERS_ALONE


def fit(method: str, **inputs: Any) -> dict[str, np.ndarray]:
    """Runs a method; returns what `peers/fit_table.py` writes."""
    return PEERS[method].run(method=method, **inputs)


def regression_scores(
    found: dict[str, np.ndarray], y: np.ndarray, *, whole_numbers: bool
) -> dict[str, float]:
    """Returns the scores of what a method found, as `distribution_scores`."""
    distribution = (
        MixtureOfNormals(found["means"], found["stddevs"])
        if "means" in found
        else EqualWeights(found["mean"], found["quantiles"])
    )
    return distribution_scores(
        distribution, y, whole_numbers=whole_numbers, interval=found.get("interval")
    )


def cost(found: dict[str, np.ndarray]) -> dict[str, Any]:
    """Returns the seconds and the versions of a run."""
    return {"seconds": float(found["seconds"]), "versions": str(found["versions"])}
