"""The SavedModel behind MLServer, with adaptive batching: `serve_mlserver.py PORT`."""

import asyncio
import sys
from typing import Any

import numpy as np
from mlserver import MLModel, MLServer
from mlserver.codecs import NumpyCodec
from mlserver.settings import ModelSettings, Settings
from mlserver.types import InferenceRequest, InferenceResponse
from saved_model import MOST_ROWS, SavedModel


class Predictor(MLModel):
    """Predicts rows."""

    async def load(self) -> bool:
        """Loads the model."""
        self._model = SavedModel()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Returns the moments of a batch, as one tensor each."""
        rows = NumpyCodec.decode_input(payload.inputs[0])
        answers = self._model.predict(rows)
        outputs = [
            NumpyCodec.encode_output(name, _column(answers, name))
            for name in answers[0]
        ]
        return InferenceResponse(model_name=self.name, outputs=outputs)


def _column(answers: list[dict[str, Any]], name: str) -> np.ndarray:
    return np.array([answer[name] for answer in answers])


async def main(port: int) -> None:
    """Serves until the process is stopped."""
    server = MLServer(
        Settings(
            host="127.0.0.1",
            http_port=port,
            grpc_port=port + 1,
            metrics_port=port + 2,
            # In the process of the server, as the way to another costs more.
            parallel_workers=0,
            debug=False,
            use_structured_logging=False,
        )
    )
    model = ModelSettings(
        name="small",
        implementation=Predictor,
        max_batch_size=MOST_ROWS,
        max_batch_time=0.001,
    )
    await server.start([model])


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
