"""Rows about which a model abstained, in every format."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest

from service.model_process.answer import Answer
from service.model_process.codecs import CODECS

REASON = "The epistemic uncertainty is above"


@pytest.fixture
def answer() -> Answer:
    """Of two rows, the model abstained from the first."""
    head = orjson.dumps(
        {
            "inputs": [{"name": "a", "shape": [1], "datatype": "FP32", "data": [1]}],
            "parameters": {"prediction_sets": "0.5"},
        }
    )
    request: Any = SimpleNamespace(
        query=CODECS["open_inference"].read(head, {}),
        manifest=SimpleNamespace(classes=("red", "green")),
        version=SimpleNamespace(name="m", number=1),
        num_samples=10,
        is_truncated=False,
        adaptation=None,
        asked=(),
    )
    outputs = {
        "probabilities": np.float32([[np.nan, np.nan], [0.25, 0.75]]),
        "class": ["", "green"],
        "prediction_sets": [[[]], [["green"]]],
        "epistemic_percentile": np.float32([99.5, 10.0]),
        "abstained": [REASON, ""],
    }
    return Answer(request, outputs, [[], []])


def test_arrow_has_no_values_of_the_row(answer: Answer) -> None:
    with pa.ipc.open_stream(CODECS["arrow"].write(answer).body) as stream:
        first, second = stream.read_all().to_pylist()
    assert (first["class"], first["prediction_sets"]) == ("", [[]])
    assert second["abstained"] == ""
    assert np.isnan(first["probabilities"]).all()
    assert first["abstained"] == REASON
    assert second["prediction_sets"] == [["green"]]


def test_csv_has_empty_cells_of_the_row(answer: Answer) -> None:
    _, first, second = bytes(CODECS["csv"].write(answer).body).decode().splitlines()
    assert first == f',,,,99.5,"{REASON}",""'
    assert second == '0.25,0.75,"green","[""green""]",10,,""'


def test_open_inference_has_empty_texts_and_sets(answer: Answer) -> None:
    document = orjson.loads(CODECS["open_inference"].write(answer).body)
    outputs = {output["name"]: output for output in document["outputs"]}
    assert outputs["class"]["data"] == ["", "green"]
    assert outputs["prediction_sets"]["shape"] == [2, 1, 2]
    assert outputs["prediction_sets"]["data"] == [False, False, False, True]
    assert outputs["probabilities"]["data"] == [None, None, 0.25, 0.75]
    assert outputs["abstained"]["data"] == [REASON, ""]
