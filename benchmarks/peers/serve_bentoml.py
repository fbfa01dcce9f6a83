"""The SavedModel behind BentoML, with adaptive batching: `serve_bentoml.py PORT`."""

import os
import sys
from pathlib import Path

import bentoml
from saved_model import MOST_ROWS, SavedModel


@bentoml.service(workers="cpu_count")
class Predictor:
    """Predicts rows."""

    def __init__(self) -> None:
        self._model = SavedModel()

    @bentoml.api(batchable=True, max_batch_size=MOST_ROWS)
    def predict(self, instances: list[list[float]]) -> list[dict[str, list[float]]]:
        """Returns the moments of each row of a batch."""
        return self._model.predict(instances)


if __name__ == "__main__":
    path = Path(__file__)
    address = ("--host", "127.0.0.1", "--port", sys.argv[1])
    command = [sys.executable, "-m", "bentoml", "serve", f"{path.stem}:Predictor"]
    os.execv(sys.executable, [*command, "--working-dir", str(path.parent), *address])
