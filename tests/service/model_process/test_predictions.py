"""Predictions of one model, whose computing a test runs step by step."""

import gc
import math
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import orjson
import pytest

import tfbbb
from service.model_process.adoption import Ledger
from service.model_process.metrics import UncertaintyMetrics
from service.model_process.predictions import Prediction, Predictions
from service.model_process.registry import ModelRegistry
from service.model_process.scheduler import Scheduler
from service.shared.database import Base, Database
from service.shared.frames import Frame
from service.shared.prediction_parameters import Parameters
from service.shared.settings import Settings
from tests.service.stores import directory_store

# Each option of a request, once or more; the model is a regression of three features.
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "seed": {"parameters": {"seed": 7}},
    "draws": {"parameters": {"num_samples": 20}},
    "quantile": {"parameters": {"quantiles": [0.1]}},
    "another quantile": {"parameters": {"quantiles": [0.9]}},
    "interval": {"parameters": {"intervals": [0.9]}},
    "set": {"parameters": {"prediction_sets": [0.9]}},
    "samples": {"parameters": {"return_samples": True, "num_samples": 5}},
    "targets": {"targets": [0.5, 1.5]},
    "signature": {"signature_name": "quantiles", "parameters": {"quantiles": [0.1]}},
    # Half the standard error that a few tens of draws leave.
    "precision": {"parameters": {"max_standard_error": 8e-6}},
    "relative precision": {
        "parameters": {"max_standard_error": 8e-6, "relative_error": True}
    },
    "method": {"parameters": {"method": "weight"}},
    "method of the export": {"parameters": {"method": "auto"}},
    "deadline": {"parameters": {"deadline_ms": 1e6}},
}
# Rows of two requests: no two are alike.
ROWS = np.random.default_rng(0).normal(size=(4, 3)).round(2).tolist()
DRAWS = 50


class Asked:
    """A request, and the reply once there is one."""

    def __init__(self, rows: Any, body: dict[str, Any]) -> None:
        header: dict[str, Any] = {"name": "curve", "options": {}}
        header |= {"arrived": time.monotonic(), "reads": "json", "writes": "json"}
        header |= {"version": None}
        content = orjson.dumps({"instances": rows, **body})
        self.replies: list[Any] = []
        self.prediction = Prediction(Frame(header, content), self.replies.append)

    def outcome(self) -> Any:
        """The answer, or the text of the error."""
        (write,) = self.replies
        try:
            return orjson.loads(write().body)
        except Exception as error:
            return str(error)


@pytest.fixture(scope="module")
def predictions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Predictions]:
    """Predictions that are computed when a test calls `run_once` of the scheduler."""
    path: Path = tmp_path_factory.mktemp("predictions")
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    hidden = tfbbb.layers.DenseVariational(4, activation="tanh")(inputs)
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
    models = path / "models"
    model.export_predictive(models / "curve" / "1", num_samples=DRAWS)
    (path / "tfbbb.sqlite3").touch()
    database = Database(f"sqlite:///{path}/tfbbb.sqlite3")
    Base.metadata.create_all(database.engine)
    store = directory_store(models)
    registry = ModelRegistry(store, Ledger(database, store))
    registry.refresh()
    settings = Settings()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scheduler, "start", lambda self, threads: None)
        yield Predictions(
            registry,
            settings,
            UncertaintyMetrics(registry),
        )
    database.close()


def answers(predictions: Predictions, *asked: Asked) -> list[Any]:
    for one in asked:
        predictions.start(one.prediction)
    while predictions.scheduler.run_once():
        pass
    return [one.outcome() for one in asked]


def assert_alike(ours: Any, theirs: Any, what: str) -> None:
    """Asserts that answers are equal, but for the rounding of another batch size."""
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), what
        assert list(ours) == list(theirs), what
        for name in theirs:
            assert_alike(ours[name], theirs[name], f"{what}: {name}")
    elif isinstance(theirs, list):
        assert isinstance(ours, list), what
        assert len(ours) == len(theirs), what
        for one, other in zip(ours, theirs, strict=True):
            assert_alike(one, other, what)
    elif isinstance(theirs, float):
        assert math.isclose(ours, theirs, rel_tol=1e-4, abs_tol=1e-6), what
    else:
        assert ours == theirs, what


def test_the_options_are_those_of_a_request() -> None:
    named = {name for one in OPTIONS.values() for name in one.get("parameters", {})}
    assert named == set(Parameters.model_fields)


def test_requests_at_the_same_time_are_answered_as_alone(
    predictions: Predictions,
) -> None:
    first, second = ROWS[:2], ROWS[2:]
    alone = {
        name: [answers(predictions, Asked(rows, body))[0] for rows in (first, second)]
        for name, body in OPTIONS.items()
    }
    for name in ("precision", "relative precision"):
        assert alone[name][0]["num_samples"] > DRAWS
    together = [
        Asked(rows, OPTIONS[name]) for name in OPTIONS for rows in (first, second)
    ]
    expected = [answer for name in OPTIONS for answer in alone[name]]
    for asked, found, answer in zip(
        together, answers(predictions, *together), expected, strict=True
    ):
        assert_alike(found, answer, str(asked.prediction.frame.body))


def test_a_version_that_has_predicted_is_freed_with_its_last_request(
    predictions: Predictions,
) -> None:
    model = tfbbb.load(predictions._registry.version("curve").path)
    version = predictions._registry.version("curve")
    held = weakref.ref(model)
    version._model, kept = model, version.load()
    gc.disable()
    try:
        del model
        answers(predictions, Asked(ROWS[:2], {}), Asked(ROWS[2:], OPTIONS["interval"]))
        version._model = kept
        assert held() is None
    finally:
        gc.enable()


def test_request_cancelled_before_its_turn_is_not_computed(
    predictions: Predictions,
) -> None:
    asked = Asked(ROWS, {})
    predictions.start(asked.prediction)
    for _ in range(2):
        asked.prediction.cancel()
    assert not predictions.scheduler.run_once()


def test_request_cancelled_between_blocks_ends_there(predictions: Predictions) -> None:
    rows = np.ones((100, 3)).tolist()
    asked = Asked(rows, {"parameters": {"num_samples": 10_000}})
    predictions.start(asked.prediction)
    ((_, _, task),) = predictions.scheduler._waiting
    predictions.scheduler.run_once()
    asked.prediction.cancel()
    assert 0 < task.done < len(rows)
    assert not predictions.scheduler.run_once()


def test_request_that_is_too_late_for_its_turn_is_refused(
    predictions: Predictions,
) -> None:
    asked = Asked(ROWS, {"parameters": {"deadline_ms": 50.0, "num_samples": 2}})
    predictions.start(asked.prediction)
    time.sleep(0.1)
    while predictions.scheduler.run_once():
        pass
    assert "deadline of the request passed" in asked.outcome()
