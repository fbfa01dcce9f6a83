"""Percentiles of epistemic uncertainty, and familiarity, in answers."""

from typing import Any

import numpy as np
import orjson
import pytest

import tfbbb
from service.model_process.answer import (
    PERCENTILE,
    Block,
    Request,
    VersionName,
    compute,
    finish,
    prepare,
    truncate,
)
from service.model_process.codecs import CODECS
from service.shared.settings import Settings
from tests.served_answer import NO_OPTIONS, served_answer
from tests.service.model_process.exporting import exported, network
from tfbbb.export import EpistemicReference

ROWS = np.array([[0.1, 0.2], [-0.3, 0.1], [40.0, -30.0]])


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A network with a familiarity and a reference of its epistemic uncertainty."""
    model = network("normal", 1, hidden=0)
    seen = np.random.default_rng(0).normal(size=(200, 2)).astype("float32")
    model.familiarity = tfbbb.Familiarity.fit(seen)
    reference = EpistemicReference.of(model.predictive(seen, 50))
    path = tmp_path_factory.mktemp("m") / "1"
    return exported(model, path, num_samples=50, epistemic_reference=reference)


def prepared(model: Any, **parameters: Any) -> Request:
    body = orjson.dumps({"instances": ROWS.tolist(), "parameters": parameters})
    query = CODECS["json"].read(body, NO_OPTIONS)
    return prepare(VersionName("m", 1), model.manifest, query, Settings())


def rows_of(model: Any, **body: Any) -> Any:
    return served_answer(model, {"instances": ROWS.tolist(), **body})["predictions"]


def test_each_row_has_its_percentile(numbers: Any) -> None:
    found = rows_of(numbers)
    expected = numbers.manifest.epistemic_reference.percentiles(
        numbers.predictive(ROWS.astype("float32"))
    )
    percentiles = [row["epistemic_percentile"] for row in found]
    np.testing.assert_allclose(percentiles, expected, rtol=1e-4)
    assert percentiles[2] == 100.0


def test_each_row_has_its_familiarity_and_the_least_one_a_warning(numbers: Any) -> None:
    found = rows_of(numbers)
    familiarity = [row["familiarity"] for row in found]
    np.testing.assert_allclose(familiarity, numbers.familiarity(ROWS))
    assert ["warnings" in row for row in found] == [False, False, True]


def test_a_version_without_a_reference_has_no_percentile(plain_numbers: Any) -> None:
    row = rows_of(plain_numbers)[0]
    assert not {"epistemic_percentile", "familiarity"} & row.keys()


def test_a_row_has_one_percentile_whatever_draws_are_asked(numbers: Any) -> None:
    expected = [row["epistemic_percentile"] for row in rows_of(numbers)]
    for parameters in ({"seed": 5}, {"num_samples": 20}, {"method": "weight"}):
        found = rows_of(numbers, parameters=parameters)
        assert [row["epistemic_percentile"] for row in found] == expected


def test_fewer_draws_to_be_in_time_have_no_percentile(numbers: Any) -> None:
    request = prepared(numbers, deadline_ms=60_000)
    assert request.may_truncate
    fewer = truncate(request, request.work / 4)
    (arrays,) = compute(numbers, [Block(fewer, slice(0, 3))])
    assert PERCENTILE not in finish(fewer, [arrays]).outputs
