"""The SavedModel behind BentoML, with adaptive batching.

`bentoml serve serve_bentoml:Predictor`
"""

from typing import Any

import bentoml
import numpy as np
from saved_model import MOST_ROWS, SavedModel


@bentoml.service(
    workers=1,
    traffic={"timeout": 60, "max_concurrency": 10_000},
    logging={"access": {"enabled": False}},
)
class Predictor:
    """Predicts rows."""

    def __init__(self) -> None:
        self._model = SavedModel()

    @bentoml.api(batchable=True, max_batch_size=MOST_ROWS, max_latency_ms=10_000)
    def predict(self, instances: np.ndarray) -> list[dict[str, Any]]:
        """Returns the moments of each row of a batch."""
        return self._model.predict(instances)
