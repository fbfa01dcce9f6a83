"""Adapted intervals and sets of groups, without the processes of the service."""

from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest

from service.model_process.answer import (
    Answer,
    Block,
    Request,
    VersionName,
    compute,
    finish,
    prepare,
)
from service.model_process.codecs import CODECS
from service.model_process.scores import score
from service.shared.settings import Settings
from tests.service.model_process.exporting import CLASSES, exported, network
from tfbbb.judging.adaptive_intervals import LEVELS, AdaptiveIntervals, adapt_levels
from tfbbb.prediction.recalibration import ConformalIntervals, ConformalSets

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(4, 2)).astype("float32")
X[:, 1] = [0, 1, 1, 0]


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A model with a group for the value 1 of the second feature, of few rows."""
    scores = [np.linspace(0.1, 2.0, 30).tolist()]
    conformal = ConformalIntervals(scores, by=1, groups=[1.0], group_scores=[scores])
    model = network(hidden=0)
    model.recalibration = conformal
    return exported(model, tmp_path_factory.mktemp("numbers") / "1")


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    scores = [np.linspace(0.0, 0.9, 30).tolist()]
    sets = ConformalSets(scores, by=1, groups=[1.0], group_scores=[scores])
    model = network("categorical", 3, hidden=0)
    model.recalibration = sets
    path = tmp_path_factory.mktemp("classes") / "1"
    return exported(model, path, classes=CLASSES)


def request_of(model: Any, **body: Any) -> Request:
    content = orjson.dumps({"instances": X.tolist(), **body})
    query = CODECS["json"].read(content, {})
    return prepare(VersionName("m", 1), model.manifest, query, Settings())


def answered(model: Any, request: Request) -> Answer:
    (arrays,) = compute(model, [Block(request, slice(0, request.num_rows))])
    return finish(request, [arrays])


def grown(*, of_sets: bool) -> AdaptiveIntervals:
    """Ends after errors of a group alone, which all rows follow for a while."""
    adaptive = AdaptiveIntervals.start(of_sets=of_sets)
    far = np.full((10, 1, len(LEVELS)), 1e6)
    adaptive = adaptive.update(far[:5], [None] * 5)
    return adaptive.update(far, ["1"] * 10)


def test_rows_of_a_group_have_its_ends(numbers: Any) -> None:
    parameters = {"intervals": [0.9], "adapt": True}
    request = request_of(numbers, parameters=parameters)
    plain = answered(numbers, request)
    adaptive = grown(of_sets=False)
    adaptive = replace(adaptive, every=AdaptiveIntervals.start().every)
    answer = answered(numbers, request.adapted_by(adaptive.to_dict()))
    lengths = [x.outputs["upper"] - x.outputs["lower"] for x in (answer, plain)]
    factor = adaptive.describe("1")["factors"]["0.9"]
    np.testing.assert_allclose(
        (lengths[0] / lengths[1])[:, 0, 0], [1, factor, factor, 1], rtol=1e-5
    )
    adapted = answer.remarks["adapted"]
    assert list(adapted["groups"]) == ["1"]
    assert adapted["groups"]["1"]["num_rows"] == 10


def test_ends_move_in_units_of_the_widest_rows_of_feedback(numbers: Any) -> None:
    scores = score(numbers, request_of(numbers, targets=[9.0] * 4))
    halves = scores["half_lengths"]
    adaptive = AdaptiveIntervals.start().update(
        np.tile(scores["adaptation"], (5, 1, 1)), halves=np.tile(halves, (5, 1, 1))
    )
    # As if the rows of feedback had a tenth of the length.
    ends = adaptive.every
    adaptive = replace(adaptive, every=replace(ends, widest=0.1 * ends.widest))
    request = request_of(numbers, parameters={"intervals": [0.9], "adapt": True})
    plain = answered(numbers, request).outputs
    found = answered(numbers, request.adapted_by(adaptive.to_dict())).outputs
    for side, name in enumerate(("lower", "upper")):
        unit = 0.1 * halves[:, 0, 2].max()
        moved = unit * (adaptive.ends([0.9])[0, 0, side] - [-1, 1][side])
        np.testing.assert_allclose(
            np.ravel(found[name] - plain[name]), moved, rtol=1e-4, atol=1e-5
        )


def test_sets_of_a_group_are_those_of_its_level(classes: Any) -> None:
    parameters = {"prediction_sets": [0.5, 0.8], "adapt": True}
    request = request_of(classes, parameters=parameters)
    adaptive = grown(of_sets=True)
    answer = answered(classes, request.adapted_by(adaptive.to_dict()))
    assert answer.request.query.parameters == request.query.parameters
    prediction = classes.predictive(X)
    for place, group in enumerate([None, "1", "1", None]):
        levels = adapt_levels([0.5, 0.8], adaptive.ends([0.5, 0.8], group))
        for level, names in zip(
            levels, answer.outputs["prediction_sets"][place], strict=True
        ):
            inside = prediction.prediction_set(level)[place]
            assert names == [CLASSES[i] for i in np.flatnonzero(inside)]


def test_scores_of_classes_are_the_least_levels_of_their_sets(classes: Any) -> None:
    request = request_of(classes, targets=["red", "blue", "green", "red"])
    scores = score(classes, request)["adaptation"]
    assert scores.shape == (4, 1, len(LEVELS))
    prediction = classes.predictive(X)
    for row, name in enumerate((0, 2, 1, 0)):
        ends = np.full((1, 1, 1), scores[row, 0, 2])
        above, below = (adapt_levels([0.9], ends * f)[0] for f in (1 + 1e-6, 0.9))
        assert prediction.prediction_set(above)[row, name]
        smallest = prediction.prediction_set(1e-6)[row, name]
        assert smallest or not prediction.prediction_set(below)[row, name]
