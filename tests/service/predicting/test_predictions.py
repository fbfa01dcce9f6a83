"""Predictions of one model, asked at the same time."""

import asyncio
import gc
import time
import weakref

import keras
import numpy as np
import orjson
import pytest
from prometheus_client import CollectorRegistry

import tfbbb
from service.predicting.adoption import Ledger
from service.predicting.loaded_model import LoadedModel
from service.predicting.models import Models
from service.predicting.query import Parameters
from service.predicting.refreshes import Refreshes
from service.predicting.registry import ModelRegistry
from service.shared.database import Base, Database
from service.shared.errors import ServiceError
from service.shared.settings import Settings
from tests.service.stores import directory_store
from tests.waiting import wait_until

# Each option of a request, once or more; the model is a regression of three features.
OPTIONS = {
    "plain": {},
    "seed": {"parameters": {"seed": 7}},
    "draws": {"parameters": {"num_samples": 20}},
    "quantile": {"parameters": {"quantiles": [0.1]}},
    "another quantile": {"parameters": {"quantiles": [0.9]}},
    "interval": {"parameters": {"intervals": [0.9]}},
    "box": {"parameters": {"joint_intervals": [0.9]}},
    "times": {"parameters": {"times": [0.5]}},
    "set": {"parameters": {"prediction_sets": [0.9]}},
    "samples": {"parameters": {"return_samples": True, "num_samples": 5}},
    "targets": {"targets": [0.5, 1.5]},
    "method": {"parameters": {"method": "weight"}},
    "method of the export": {"parameters": {"method": "auto"}},
    "deadline": {"parameters": {"deadline_ms": 1e6}},
}
# Rows of two requests: no two are alike.
ROWS = np.random.default_rng(0).normal(size=(4, 3)).round(2).tolist()
DRAWS = 50


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    path = tmp_path_factory.mktemp("predictions")
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    hidden = tfbbb.layers.DenseVariational(4, activation="tanh")(inputs)
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
    model.export_predictive(path / "models" / "curve" / "1", num_samples=DRAWS)
    (path / "tfbbb.sqlite3").touch()
    database = Database(f"sqlite:///{path}/tfbbb.sqlite3")
    Base.metadata.create_all(database.engine)
    store = directory_store(path / "models")
    registry = ModelRegistry(store, Ledger(database, store))
    registry.refresh()
    models = Models(registry, Settings(), CollectorRegistry(), Refreshes())
    models.start()
    yield models
    models.close()
    database.close()


def answers(models, *asked):
    """Asks for rows at the same time; an error is answered by its text."""

    async def answer(rows, body):
        content = orjson.dumps({"instances": rows, **body})
        try:
            predicted = await models.predict("curve", None, content, time.monotonic())
        except ServiceError as error:
            return str(error)
        return orjson.loads(predicted.answer.body)

    async def all_of_them():
        return await asyncio.gather(*(answer(*one) for one in asked))

    return asyncio.run(all_of_them())


def assert_alike(ours, theirs, what):
    """Asserts that answers are equal, but for the rounding of another batch size."""

    def check(one, other):
        is_float = isinstance(other, float)
        expected = pytest.approx(other, rel=1e-4, abs=1e-6) if is_float else other
        assert one == expected, what

    keras.tree.map_structure(check, ours, theirs)


def test_the_options_are_those_of_a_request():
    named = {name for one in OPTIONS.values() for name in one.get("parameters", {})}
    assert named == set(Parameters.model_fields)


def test_requests_at_the_same_time_are_answered_as_alone(models):
    asked = [(rows, body) for body in OPTIONS.values() for rows in (ROWS[:2], ROWS[2:])]
    alone = [answers(models, one)[0] for one in asked]
    for one, found, answer in zip(asked, answers(models, *asked), alone, strict=True):
        assert_alike(found, answer, str(one))


def test_a_large_answer_is_that_of_its_rows(models):
    # More numbers than the process writes itself.
    levels = np.linspace(0.01, 0.99, 50).tolist()
    body = {"parameters": {"quantiles": levels}}
    large, small = (answers(models, (rows, body))[0] for rows in (100 * ROWS, ROWS))
    assert_alike(large["predictions"], 100 * small["predictions"], "large")


def test_a_version_that_has_predicted_is_freed_with_its_last_request(models):
    version = models._registry.version("curve")
    kept, version._model = version._model, LoadedModel(version.path)
    held = weakref.ref(version._model)
    gc.disable()
    try:
        answers(models, (ROWS[:2], {}), (ROWS[2:], OPTIONS["interval"]))
        version._model = kept
        # A thread may still hold its last answer.
        wait_until(lambda: held() is None)
    finally:
        gc.enable()
