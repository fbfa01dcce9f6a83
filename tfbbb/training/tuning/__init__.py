"""Search for a spec that predicts better than the default, by held-out rows.

The names load on first use: the command line prints its help without TensorFlow.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfbbb.training.tuning.search import TunedTable, tune
    from tfbbb.training.tuning.study import StudyError
    from tfbbb.training.tuning.trial import Trial

_HOMES = {
    "Trial": "trial",
    "StudyError": "study",
    "TunedTable": "search",
    "tune": "search",
}

__all__ = ["StudyError", "Trial", "TunedTable", "tune"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
        return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
