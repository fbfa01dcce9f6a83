"""Threads compute parts of the rows; no answer depends on how many there are."""

from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
from threadpoolctl import threadpool_info

import tfbbb
from tfbbb.base import threads
from tfbbb.base.threads import map_in_threads
from tfbbb.export.inputs import to_tensors
from tfbbb.prediction.passes import Passes

ROWS = 600
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(ROWS, 3)).astype("float32")
Y = GENERATOR.normal(size=(ROWS, 1))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    inputs = keras.Input((3,))
    hidden = tfbbb.layers.DenseVariational(16, activation="tanh")(inputs)
    network = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(hidden))
    path = tmp_path_factory.mktemp("model") / "1"
    network.export_predictive(path, num_samples=20)
    return tfbbb.load(path, engine="numpy")


def answers(model):
    return [
        *model.predict(X).values(),
        model.ask("quantiles", X, [0.1, 0.7]),
        model.ask("log_prob", X, targets=Y),
        model.ask("sample", X),
        # Blocks of the draws, and few rows at a time.
        model.predictive(X, max_memory_mb=0.05).mean,
    ]


def test_answers_are_the_same_by_any_number_of_threads(model, monkeypatch):
    found = []
    for several in (1, 5):
        monkeypatch.setattr(threads, "num_threads", lambda several=several: several)
        found.append(answers(model))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def blas_threads():
    return {x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"}


def test_blas_has_one_thread_until_the_last_call_ends():
    before = blas_threads()

    def inner(part):
        return set().union(*map_in_threads(lambda _: blas_threads(), range(part)))

    with ThreadPoolExecutor(3) as calls:
        found = list(calls.map(lambda _: map_in_threads(inner, [1, 2, 3]), range(3)))
    assert np.ravel(found).tolist() == 9 * [{1}]
    assert blas_threads() == before


def test_an_error_in_a_part_is_raised():
    before = blas_threads()
    with pytest.raises(ZeroDivisionError):
        map_in_threads(lambda part: 1 // part, [1, 0, 2])
    assert blas_threads() == before


def test_questions_about_the_same_tensors_take_one_pass(model, monkeypatch):
    passes, compute = [], Passes.predict

    def counted(self, *arguments, **named):
        passes.append(arguments[1:3])
        return compute(self, *arguments, **named)

    monkeypatch.setattr(Passes, "predict", counted)
    tensors = to_tensors(X, model.manifest)
    model.predict(tensors)
    levels = model.ask("quantiles", tensors, [0.1, 0.7])
    assert passes == [(20, 0)]
    np.testing.assert_array_equal(levels, model.ask("quantiles", X, [0.1, 0.7]))
    passes.clear()
    model.predict(tensors, seed=1)
    model.predict(tensors.take(slice(3)), seed=1)
    assert passes == [(20, 1), (20, 1)]
