"""The judgement of a model in a few words, for lists of models and jobs."""

from typing import Any

from tfbbb.base.texts import listed
from tfbbb.base.types import Config

# A difference counts from this number of its standard errors on.
STANDARD_ERRORS = 2.0
# Fewer rows do not tell how good a model is.
FEWEST_ROWS_TO_JUDGE = 10


def verdict(judgement: Config | None) -> str | None:
    """Returns what is wrong with a model, or None for a good model.

    That is `"learned nothing"`, `"wrong in sum"` or `"worse than ..."`. A model is
    wrong in sum if the judgement finds the sum of its predictions `off`. It is worse
    than a baseline, or than its parent version, if its error is more by two standard
    errors of the paired differences.

    Example:
    >>> error = {"reduction": -0.3, "z": -2.5}
    >>> comparisons = {"mean": {"error": {"z": 4.0}}, "linear model": {"error": error}}
    >>> verdict({"rows": 60, "learned": True, "comparisons": comparisons})
    'worse than linear model'
    """
    if not judgement:
        return None
    if not judgement.get("learned", True):
        return "learned nothing"
    if judgement.get("rows", 0) < FEWEST_ROWS_TO_JUDGE:
        return None
    if judgement.get("sums", {}).get("off", False):
        return "wrong in sum"
    comparisons: dict[str, Any] = judgement.get("comparisons", {})
    worse = [
        name
        for name, found in comparisons.items()
        if found["error"]["z"] < -STANDARD_ERRORS
    ]
    return f"worse than {listed(worse)}" if worse else None
