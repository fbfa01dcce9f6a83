"""The SavedModel behind LitServe, with dynamic batching: `serve_litserve.py PORT`."""

import sys
from typing import Any

import litserve
from saved_model import MOST_ROWS, SavedModel


class Predictor(litserve.LitAPI):
    """Predicts rows."""

    def setup(self, device: str) -> None:
        """Loads the model."""
        self._model = SavedModel()

    def decode_request(self, request: dict[str, Any]) -> Any:
        """Returns the row of a request."""
        (row,) = request["instances"]
        return row

    def batch(self, inputs: list[Any]) -> list[Any]:
        """Returns the rows of a batch."""
        return inputs

    def predict(self, x: list[Any]) -> list[dict[str, Any]]:
        """Returns the moments of each row of a batch."""
        return self._model.predict(x)

    def unbatch(self, output: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns the moments of each row."""
        return output

    def encode_response(self, output: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer to a request."""
        return {"predictions": [output]}


if __name__ == "__main__":
    api = Predictor(max_batch_size=MOST_ROWS, batch_timeout=0.0)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1)
    server.run(
        host="127.0.0.1",
        port=int(sys.argv[1]),
        generate_client_file=False,
        log_level="warning",
        access_log=False,
    )
