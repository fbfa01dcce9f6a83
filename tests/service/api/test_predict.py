import numpy as np
import pytest

from tests.service.serving import ask
from tfbbb.export.reader import load

ROWS = [[1.0, 2.0, 3.0], [0.5, 0.0, -0.5]]


def test_answer_over_http_is_that_of_the_saved_model(client, saved_models):
    model = load(saved_models / "diabetes" / "2")
    parameters = {"num_samples": 30, "seed": 5, "quantiles": [0.1, 0.9]}
    body = {"inputs": ROWS, "parameters": {**parameters, "return_samples": True}}
    answer = ask(client, "diabetes", body).json()
    assert (answer["model_name"], answer["model_version"]) == ("diabetes", "2")
    assert answer["num_samples"] == 30
    outputs = answer["outputs"]
    expected = model.predict(ROWS, 30, 5)
    expected["std"] = np.sqrt(expected["variance"])
    expected["quantiles"] = model.ask("quantiles", ROWS, [0.1, 0.9], 30, 5)
    expected["samples"] = model.ask("sample", ROWS, None, 30, 5)
    assert outputs.keys() == expected.keys()
    for name, values in outputs.items():
        np.testing.assert_array_equal(
            np.array(values, dtype=np.float32), expected[name]
        )


def test_files_of_older_versions_answer_intervals_and_sets(client):
    # They have neither signature: intervals lie between quantiles.
    parameters = {"intervals": [0.8], "quantiles": [0.1, 0.9]}
    body = {"instances": ROWS, "parameters": parameters}
    for row in ask(client, "diabetes", body).json()["predictions"]:
        assert [*row["lower"], *row["upper"]] == row["quantiles"]
    body = {"instances": [[2.0, 2.0, 0.0]], "parameters": {"prediction_sets": [0.9]}}
    (row,) = ask(client, "iris", body).json()["predictions"]
    assert row["prediction_sets"] == [["setosa", "versicolor"]]


def test_same_request_gets_the_same_answer(client):
    body = {"instances": ROWS}
    answers = {
        ask(client, "diabetes", body | extra).content
        for extra in ({}, {"parameters": None}, {"parameters": {"seed": 0}})
    }
    assert len(answers) == 1
    other = ask(client, "diabetes", body | {"parameters": {"seed": 1}})
    assert other.content not in answers


def test_columns_that_the_model_does_not_read_are_left_aside(client):
    features, extra = ("age", "bmi", "bp"), {"progression": None, "note": ["x", []]}
    rows = [extra | dict(zip(features, row, strict=True)) for row in ROWS]
    # Rows need not carry the same ones.
    del rows[1]["note"]
    assert (
        ask(client, "diabetes", {"instances": rows}).content
        == ask(client, "diabetes", {"instances": ROWS}).content
    )
    columns = dict(zip(features, zip(*ROWS, strict=True), strict=True))
    assert (
        ask(client, "diabetes", {"inputs": extra | columns}).content
        == ask(client, "diabetes", {"inputs": columns}).content
    )


@pytest.mark.parametrize(
    "inputs",
    [ROWS, {"inputs": ROWS}, {"age": [1.0, 0.5], "bmi": [2.0, 0.0], "bp": [3.0, -0.5]}],
)
def test_columns_are_answered_as_columns(client, inputs):
    by_rows = ask(client, "diabetes", {"instances": ROWS}).json()["predictions"]
    by_columns = ask(client, "diabetes", {"inputs": inputs}).json()["outputs"]
    assert by_columns == {
        name: [prediction[name] for prediction in by_rows] for name in by_rows[0]
    }


def test_null_is_a_missing_value_where_one_may_be_missing(client):
    # A missing number counts 100 and a text its length.
    rows = [[1, None, "f", None], [1, 5, "male", ""]]
    answer = ask(client, "patients", {"instances": rows}).json()
    means = [prediction["mean"][0] for prediction in answer["predictions"]]
    assert means == pytest.approx([204.0, 20.0], abs=0.05)
    columns = {
        "age": [1, 1],
        "blood_pressure": [None, 5],
        "sex": ["f", "male"],
        "region": [None, ""],
    }
    by_tensor = ask(client, "patients", {"inputs": columns}).json()
    assert by_tensor["outputs"]["mean"] == [[mean] for mean in means]


def test_booleans_count_as_numbers(client):
    assert (
        ask(client, "diabetes", {"instances": [[True, False, 1]]}).content
        == ask(client, "diabetes", {"instances": [[1, 0, 1]]}).content
    )
