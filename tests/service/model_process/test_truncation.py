"""Predictions with fewer draws, where all of them would miss the deadline."""

import json
import queue
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest

from service.model_process.adoption import Ledger
from service.model_process.metrics import UncertaintyMetrics
from service.model_process.predictions import Prediction, Predictions
from service.model_process.recorder import PredictionRecorder
from service.model_process.registry import ModelRegistry
from service.model_process.shadow_metrics import ShadowMetrics
from service.model_process.speed import Speed
from service.shared.database import Database
from service.shared.errors import DeadlineExceeded
from service.shared.frames import Frame
from service.shared.route import Route
from service.shared.settings import Settings
from service.shared.work_rates import WorkRates
from tests.service.stand_in import load
from tests.service.stores import directory_store

ROWS = [[1.0, 2.0, 3.0]]
# A draw of a row takes a second, by the estimate: no test waits.
SECONDS = 60
TIGHT, AMPLE = {"deadline_ms": 1e3 * SECONDS}, {"deadline_ms": 1e6}


@pytest.fixture
def predictions(
    registry_root: Path,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Predictions:
    store = directory_store(registry_root)
    registry = ModelRegistry(store, Ledger(database, store))
    registry.refresh()
    monkeypatch.setattr(
        "service.model_process.version.ServedVersion.speed",
        lambda self, signatures: Speed(fixed=1e-6, per_unit=1.0),
    )
    settings = Settings()
    recorder = PredictionRecorder(database, settings)
    rates = WorkRates(tmp_path)
    uncertainty, shadows = UncertaintyMetrics(registry), ShadowMetrics()
    return Predictions(registry, settings, uncertainty, recorder, rates, shadows)


def answer(
    predictions: Predictions,
    body: bytes,
    codec: str = "json",
    **options: Any,
) -> Frame:
    header: dict[str, Any] = {"name": "diabetes", "options": options}
    header |= {"arrived": time.monotonic(), "reads": codec, "writes": codec}
    header |= {"request_id": "1", **asdict(Route())}
    replies: queue.Queue[Any] = queue.Queue()
    predictions.start(Prediction(Frame(header, body), replies.put))
    frame: Frame = replies.get(timeout=60)()
    return frame


def asked(predictions: Predictions, **parameters: Any) -> Any:
    body = orjson.dumps({"instances": ROWS, "parameters": parameters})
    return orjson.loads(answer(predictions, body).body)


def test_draws_that_fit_the_deadline_are_those_of_the_model(
    predictions: Predictions, registry_root: Path
) -> None:
    found = asked(predictions, **TIGHT)
    assert found["truncated"] is True
    # The largest power of two in 0.7 of 60 s.
    assert found["num_samples"] == 32
    model = load(registry_root / "diabetes" / "2")
    (row,) = found["predictions"]
    for name, values in model.predict(ROWS, 32).items():
        np.testing.assert_allclose(row[name], values[0], rtol=1e-6)


def test_enough_time_leaves_every_draw(predictions: Predictions) -> None:
    found = asked(predictions, **AMPLE)
    assert found["num_samples"] == 100
    assert "truncated" not in found


def test_number_of_draws_that_is_asked_for_is_kept(predictions: Predictions) -> None:
    # An idle process tries, however long it seems to take.
    found = asked(predictions, num_samples=90, **TIGHT)
    assert found["num_samples"] == 90
    assert "truncated" not in found


def test_standard_error_is_as_small_as_the_deadline_allows(
    predictions: Predictions,
) -> None:
    parameters = {"max_standard_error": 1e-4}
    found = asked(predictions, **parameters, **AMPLE)
    assert found["truncated"] is True
    assert 100 <= found["num_samples"] <= 350  # 0.7 of 1000 s, for two passes.
    (row,) = found["predictions"]
    assert row["mean_standard_error"][0] > parameters["max_standard_error"]


def test_deadline_too_near_for_eight_draws_is_refused_under_load(
    predictions: Predictions,
) -> None:
    predictions.scheduler._running[0] = time.monotonic() + 1.5
    with pytest.raises(DeadlineExceeded):
        asked(predictions, deadline_ms=9000)


def test_every_format_says_that_draws_were_left_out(predictions: Predictions) -> None:
    table = pa.table({"age": [1.0], "bmi": [2.0], "bp": [3.0]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    options = {name: str(value) for name, value in TIGHT.items()}
    arrow = answer(predictions, sink.getvalue().to_pybytes(), "arrow", **options)
    metadata = pa.ipc.open_stream(arrow.body).schema.metadata
    assert metadata[b"truncated"] == b"true"
    assert metadata[b"num_samples"] == b"32"

    csv = answer(predictions, b"age,bmi,bp\n1,2,3\n", "csv", **options)
    assert csv.header["headers"]["Truncated"] == "true"
    assert csv.header["headers"]["Num-Samples"] == "32"

    inputs = [{"name": "inputs", "shape": [1, 3], "datatype": "FP32", "data": ROWS[0]}]
    body = json.dumps({"inputs": inputs, "parameters": TIGHT}).encode()
    infer = orjson.loads(answer(predictions, body, "open_inference").body)
    assert infer["parameters"] == {"num_samples": 32, "truncated": True}
