"""The ONNX file behind FastAPI and ONNX Runtime: `serve_onnxruntime.py PORT`."""

import os
import sys

import numpy as np
import onnxruntime
import orjson
import uvicorn
from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

app = FastAPI()
_SESSION = onnxruntime.InferenceSession(os.environ["ONNX_FILE"])
_NAMES = [output.name for output in _SESSION.get_outputs()]


def _predict(body: bytes) -> bytes:
    rows = np.array(orjson.loads(body)["instances"], np.float32)
    columns = _SESSION.run(_NAMES, {"inputs": rows})
    answers = [
        dict(zip(_NAMES, row, strict=True)) for row in zip(*columns, strict=True)
    ]
    return orjson.dumps({"predictions": answers}, option=orjson.OPT_SERIALIZE_NUMPY)


@app.post("/predict")
async def predict(request: Request) -> Response:
    """Returns the moments of each row."""
    content = await run_in_threadpool(_predict, await request.body())
    return Response(content, media_type="application/json")


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False)
