"""The SavedModel behind Ray Serve, with dynamic batching: `serve_ray.py PORT`."""

import logging
import sys
import time
from typing import Any

import orjson
import ray
from ray import serve
from saved_model import MOST_ROWS, SavedModel
from starlette.requests import Request
from starlette.responses import Response


@serve.deployment(
    num_replicas=1,
    max_ongoing_requests=10_000,
    ray_actor_options={"num_cpus": 1},
    logging_config={"enable_access_log": False},
)
class Predictor:
    """Predicts rows."""

    def __init__(self) -> None:
        self._model = SavedModel()

    # Waits for no further request: those that come during a batch are the next one.
    @serve.batch(max_batch_size=MOST_ROWS, batch_wait_timeout_s=0.0)
    async def predict(self, rows: list[Any]) -> list[dict[str, Any]]:
        """Returns the moments of each row of a batch."""
        return self._model.predict(rows)

    async def __call__(self, request: Request) -> Response:
        """Answers a request of one row."""
        (row,) = orjson.loads(await request.body())["instances"]
        answer = {"predictions": [await self.predict(row)]}
        return Response(orjson.dumps(answer), media_type="application/json")


if __name__ == "__main__":
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        logging_level=logging.WARNING,
        _node_ip_address="127.0.0.1",
    )
    serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
    serve.run(Predictor.bind(), route_prefix="/")
    while True:
        time.sleep(60)
