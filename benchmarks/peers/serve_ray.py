"""The SavedModel behind Ray Serve, with dynamic batching: `serve_ray.py PORT`."""

import signal
import sys
from typing import Any

import ray
from ray import serve
from saved_model import MOST_ROWS, SavedModel
from starlette.requests import Request
from starlette.responses import JSONResponse


@serve.deployment(max_ongoing_requests=2 * MOST_ROWS)
class Predictor:
    """Predicts rows."""

    def __init__(self) -> None:
        self._model = SavedModel()

    @serve.batch(max_batch_size=MOST_ROWS, batch_wait_timeout_s=0.001)
    async def _predict(self, rows: list[list[float]]) -> list[dict[str, Any]]:
        return self._model.predict(rows)

    async def __call__(self, request: Request) -> JSONResponse:
        """Returns the moments of the row of a request."""
        (row,) = (await request.json())["instances"]
        return JSONResponse({"predictions": [await self._predict(row)]})


if __name__ == "__main__":
    ray.init(include_dashboard=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
    serve.run(Predictor.bind())
    signal.pause()
