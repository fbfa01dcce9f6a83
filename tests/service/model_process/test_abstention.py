"""Percentiles of epistemic uncertainty, and rows that get no answer."""

from typing import Any

import keras
import numpy as np
import pytest

import tfbbb
from service.shared.errors import InvalidRequest
from tests.served_answer import served_answer
from tfbbb.export import EpistemicReference

ROWS = np.array([[0.1, 0.2], [-0.3, 0.1], [40.0, -30.0]])
FAR = [False, False, True]


def exported(path: Any, likelihood: str, units: int, **options: Any) -> Any:
    keras.utils.set_random_seed(0)
    inputs = keras.Input((2,))
    outputs = tfbbb.layers.DenseVariational(units)(inputs)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    reference = None
    if options.pop("known", True):
        seen = np.random.default_rng(0).normal(size=(200, 2)).astype("float32")
        prediction = model.predictive(seen, 50)
        reference = EpistemicReference.of(prediction, **options)
    model.export_predictive(path, num_samples=50, epistemic_reference=reference)
    return tfbbb.load(path)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return exported(tmp_path_factory.mktemp("m") / "1", "normal", 1)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("m") / "1"
    return exported(path, "categorical", 3, abstain_above=50.0)


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


def test_columns_have_null_where_a_row_has_no_answer(numbers: Any) -> None:
    body = {"inputs": ROWS.tolist(), "parameters": {"abstain_above": 99}}
    found = served_answer(numbers, body)["outputs"]
    assert [row == [None] for row in found["mean"]] == FAR
    assert [reason is not None for reason in found["abstained"]] == FAR


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
    body = {"inputs": rows, "parameters": parameters}
    by_columns = served_answer(classes, body)["outputs"]
    for name in ("class", "prediction_sets"):
        assert [value is None for value in by_columns[name]] == above
    body = {"instances": rows, "parameters": parameters | {"abstain_above": 100}}
    every = served_answer(classes, body)["predictions"]
    assert all("class" in row for row in every)


def test_a_version_without_a_reference_cannot_abstain(
    tmp_path: Any, numbers: Any
) -> None:
    unknown = exported(tmp_path / "1", "normal", 1, known=False)
    assert "epistemic_percentile" not in rows_of(unknown)[0]
    with pytest.raises(InvalidRequest, match="which this version does not have"):
        rows_of(unknown, parameters={"abstain_above": 99})
    with pytest.raises(InvalidRequest, match="belongs to the signatures"):
        rows_of(numbers, signature_name="sample", parameters={"abstain_above": 99})


@pytest.mark.parametrize("level", [-1, 101, "99"])
def test_a_limit_that_is_no_percentile_is_refused(numbers: Any, level: Any) -> None:
    with pytest.raises(InvalidRequest, match="abstain_above"):
        rows_of(numbers, parameters={"abstain_above": level})
