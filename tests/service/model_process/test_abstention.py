"""Percentiles of epistemic uncertainty, and rows that get no answer."""

import math
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
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
from service.shared.errors import InvalidRequest
from service.shared.settings import Settings
from tests.served_answer import NO_OPTIONS, served_answer, served_body
from tests.service.model_process.exporting import exported, network
from tfbbb.export import EpistemicReference

ROWS = np.array([[0.1, 0.2], [-0.3, 0.1], [40.0, -30.0]])
FAR = [False, False, True]


def judged(path: Any, likelihood: str, units: int, **options: Any) -> Any:
    """Exports a network with a reference of its epistemic uncertainty."""
    model = network(likelihood, units, hidden=0)
    seen = np.random.default_rng(0).normal(size=(200, 2)).astype("float32")
    reference = EpistemicReference.of(model.predictive(seen, 50), **options)
    return exported(model, path, num_samples=50, epistemic_reference=reference)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return judged(tmp_path_factory.mktemp("m") / "1", "normal", 1)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("m") / "1"
    return judged(path, "categorical", 3, abstain_above=50.0)


@pytest.fixture(scope="module")
def familiar(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A network with a familiarity and a reference of its epistemic uncertainty."""
    model = network("normal", 1, hidden=0)
    seen = np.random.default_rng(0).normal(size=(200, 2)).astype("float32")
    model.familiarity = tfbbb.Familiarity.fit(seen)
    reference = EpistemicReference.of(model.predictive(seen, 50))
    path = tmp_path_factory.mktemp("m") / "1"
    return exported(
        model, path, num_samples=50, epistemic_reference=reference, abstain_above=99.0
    )


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
    assert not any("abstained" in row for row in found)


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
    # A request that abstains by it needs its draws.
    limit = {"abstain_above": 99, "abstain_by": "epistemic"}
    assert not prepared(numbers, deadline_ms=60_000, **limit).may_truncate


def test_rows_above_the_limit_of_the_request_have_the_reason_alone(
    numbers: Any,
) -> None:
    parameters = {"abstain_above": 99, "intervals": [0.9]}
    near, _, far = rows_of(numbers, parameters=parameters)
    assert {"mean", "lower", "epistemic_percentile"} <= near.keys()
    assert "abstained" not in near
    assert far == {
        "abstained": "The epistemic uncertainty is above that of 99 % of rows that the "
        "model was not trained on.",
        "epistemic_percentile": 100.0,
    }


def test_the_limit_of_the_version_holds_unless_the_request_has_another(
    classes: Any,
) -> None:
    rows = np.random.default_rng(1).normal(size=(20, 2)).tolist()
    parameters: Any = {"prediction_sets": [0.9]}
    body: Any = {"instances": rows, "parameters": parameters}
    found = served_answer(classes, body)["predictions"]
    above = [row["epistemic_percentile"] > 50 for row in found]
    assert {True, False} == set(above)
    assert ["abstained" in row for row in found] == above
    assert ["class" in row for row in found] == [not row for row in above]
    body = {"instances": rows, "parameters": parameters | {"abstain_above": 100}}
    every = served_answer(classes, body)["predictions"]
    assert all("class" in row for row in every)


def test_every_format_can_abstain(classes: Any) -> None:
    rows = np.random.default_rng(1).normal(size=(20, 2))
    parameters = {"prediction_sets": "0.9", "abstain_above": 50}
    columns: Any = {
        "name": "inputs",
        "shape": [20, 2],
        "datatype": "FP64",
        "data": rows.reshape(-1).tolist(),
    }
    body = orjson.dumps({"inputs": [columns], "parameters": parameters})
    outputs = orjson.loads(served_body(classes, "open_inference", body))["outputs"]
    tensors = {tensor["name"]: tensor for tensor in outputs}
    above = [percentile > 50 for percentile in tensors["epistemic_percentile"]["data"]]
    assert [reason != "" for reason in tensors["abstained"]["data"]] == above
    assert [name == "" for name in tensors["class"]["data"]] == above
    assert tensors["prediction_sets"]["shape"] == [20, 1, 3]

    table = pa.table({"x0": rows[:, 0], "x1": rows[:, 1]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arrow = bytes(sink.getvalue())
    answer = pa.ipc.open_stream(served_body(classes, "arrow", arrow, parameters))
    found = answer.read_all().to_pydict()
    assert [reason != "" for reason in found["abstained"]] == above
    assert [math.isnan(value) for value in found["entropy"]] == above

    text = "x0,x1\n" + "".join(f"{a},{b}\n" for a, b in rows)
    lines = bytes(served_body(classes, "csv", text.encode(), parameters)).decode()
    assert lines.count("The epistemic uncertainty") == sum(above)
    assert lines.count("nan") == 0


def test_a_version_without_a_reference_cannot_abstain(
    plain_numbers: Any, numbers: Any
) -> None:
    assert "epistemic_percentile" not in rows_of(plain_numbers)[0]
    with pytest.raises(InvalidRequest, match="this version has no such reference"):
        rows_of(plain_numbers, parameters={"abstain_above": 99})
    with pytest.raises(InvalidRequest, match="belongs to the signatures"):
        rows_of(numbers, signature_name="sample", parameters={"abstain_above": 99})


def test_a_limit_that_is_no_percentile_is_refused(numbers: Any) -> None:
    with pytest.raises(InvalidRequest, match="abstain_above"):
        rows_of(numbers, parameters={"abstain_above": 101})


def test_familiarity_decides_unless_the_request_chooses_otherwise(
    familiar: Any,
) -> None:
    familiarity = familiar.familiarity(ROWS)
    found = rows_of(familiar)
    assert ["abstained" in row for row in found] == FAR
    assert found[2] == {
        "abstained": "The row is less familiar than 99 % of rows like those of the "
        "training.",
        "familiarity": pytest.approx(familiarity[2]),
        "epistemic_percentile": 100.0,
        "warnings": found[2]["warnings"],
    }
    every = rows_of(familiar, parameters={"abstain_above": 100})
    np.testing.assert_allclose([row["familiarity"] for row in every], familiarity)
    chosen = {"abstain_by": "epistemic", "abstain_above": 30}
    by_epistemic = rows_of(familiar, parameters=chosen)
    above = [row["epistemic_percentile"] > 30 for row in by_epistemic]
    assert ["abstained" in row for row in by_epistemic] == above
    assert by_epistemic[2]["abstained"].startswith("The epistemic uncertainty")


def test_a_version_without_familiarity_cannot_abstain_by_it(numbers: Any) -> None:
    parameters = {"abstain_above": 99, "abstain_by": "familiarity"}
    with pytest.raises(InvalidRequest, match="this version has no familiarity"):
        rows_of(numbers, parameters=parameters)
