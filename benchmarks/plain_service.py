"""A service that people write: FastAPI around a SavedModel, without batching.

`uvicorn plain_service:app`, with the SavedModel in `$SAVED_MODEL`.
"""

import os

import orjson
import tensorflow as tf
from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

app = FastAPI()
_SIGNATURE = tf.saved_model.load(os.environ["SAVED_MODEL"]).signatures["predict"]


def _predict(body: bytes) -> bytes:
    rows = orjson.loads(body)["instances"]
    outputs = _SIGNATURE(
        inputs=tf.constant(rows, tf.float32),
        num_samples=tf.constant(100),
        seed=tf.constant(0),
    )
    names = list(outputs)
    columns = [outputs[name].numpy().tolist() for name in names]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return orjson.dumps({"predictions": rows})


@app.post("/predict")
async def predict(request: Request) -> Response:
    """Returns the moments of each row."""
    content = await run_in_threadpool(_predict, await request.body())
    return Response(content, media_type="application/json")


@app.get("/health/ready")
def ready() -> None:
    """Answers when the model is loaded."""
