"""Predictions with fewer draws, where all of them would miss the deadline."""

import queue
import time
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from service.model_process.adoption import Ledger
from service.model_process.metrics import UncertaintyMetrics
from service.model_process.predictions import Prediction, Predictions
from service.model_process.registry import ModelRegistry
from service.model_process.speed import Speed
from service.shared.database import Database
from service.shared.frames import Frame
from service.shared.settings import Settings
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
    uncertainty = UncertaintyMetrics(registry)
    return Predictions(registry, settings, uncertainty)


def answer(
    predictions: Predictions, body: bytes, codec: str = "json", **options: Any
) -> Frame:
    header: dict[str, Any] = {"name": "diabetes", "options": options}
    header |= {"arrived": time.monotonic(), "reads": codec, "writes": codec}
    header |= {"version": None}
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


def test_draws_are_kept_if_asked_for_or_if_there_is_time(
    predictions: Predictions,
) -> None:
    # An idle process tries, however long it seems to take.
    for asking, expected in (({"num_samples": 90, **TIGHT}, 90), (AMPLE, 100)):
        found = asked(predictions, **asking)
        assert found["num_samples"] == expected
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
