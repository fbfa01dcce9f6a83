"""A trained model that another process can take over, bit for bit."""

import tempfile
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from tfbbb.base.types import JsonObject

if TYPE_CHECKING:
    from tfbbb.training import TrainedTable

_MODEL_FILE = "model.keras"


class Fitted:
    """A trained table; pickled, the model is the bytes of its `.keras` file.

    A copy loads the model when it is first asked for, so that unpickling imports no
    TensorFlow.
    """

    def __init__(self, trained: "TrainedTable"):
        self._trained: TrainedTable | None = trained
        self._state: JsonObject = {}

    @property
    def trained(self) -> "TrainedTable":
        """The trained table."""
        if self._trained is None:
            self._trained = _restored(self._state)
            self._state = {}
        return self._trained

    def __getstate__(self) -> JsonObject:
        return self._state if self._trained is None else _state(self._trained)

    def __setstate__(self, state: JsonObject) -> None:
        self._trained, self._state = None, state


def _state(trained: "TrainedTable") -> JsonObject:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / _MODEL_FILE
        trained.model.save(path)
        model = path.read_bytes()
    state = {field.name: getattr(trained, field.name) for field in fields(trained)}
    return state | {
        "model": model,
        "schema": trained.schema.to_dict(),
        "spec": trained.spec.model_dump(mode="json"),
        # They belong to the process that trained, and to its model.
        "report": None,
        "clock": None,
    }


def _restored(state: JsonObject) -> "TrainedTable":
    import keras

    import tfbbb.model.bayesian_model  # noqa: F401  (registers the classes of the saved model)
    from tfbbb.tables import Schema
    from tfbbb.training import JobSpec, TrainedTable

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / _MODEL_FILE
        path.write_bytes(state["model"])
        model = keras.saving.load_model(path, compile=False)
    return TrainedTable(
        **{
            **state,
            "model": model,
            "schema": Schema.from_dict(state["schema"]),
            "spec": JobSpec.model_validate(state["spec"]),
        }
    )
