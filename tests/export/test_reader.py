import functools

import numpy as np
import pandas as pd
import pytest

import tfbbb
from tests import exported_models
from tfbbb.export.inputs import InputError
from tfbbb.export.manifest import ManifestError
from tfbbb.export.reader import read_signatures

X = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -0.5]], dtype=np.float32)

# A file of these tests does not change: one load serves all of them.
load = functools.cache(tfbbb.load)


def test_moments_are_those_of_the_known_posterior(regression):
    # S = 10 000 draws of f = 2 sum(x) + 0.1 w, in pairs: the mean is exact, and the
    # relative error of the variance is sqrt(4 / S).
    answer = load(regression).predict(X, num_samples=10_000)
    np.testing.assert_allclose(answer["mean"], [[12.0], [0.0]], atol=1e-5)
    np.testing.assert_allclose(answer["epistemic"], 0.01, rtol=4 * np.sqrt(4e-4))
    np.testing.assert_allclose(
        answer["variance"], answer["epistemic"] + answer["aleatoric"], rtol=1e-6
    )


def test_quantiles_and_samples_are_those_of_the_known_posterior(regression):
    model = load(regression)
    samples = model.ask("sample", X, None, 2000, 3)
    quantiles = model.ask("quantiles", X, [0.1, 0.5], 2000, 3)
    assert samples.shape == (2000, 2, 1)
    assert quantiles.shape == (2, 2, 1)
    # Of N(f, 0.01 + 0.04): the least density at these quantiles is 0.78, so that four
    # standard errors of a quantile of 2000 draws are 0.034.
    expected = [12.0 + np.sqrt(0.05) * z for z in (-1.2816, 0.0)]
    np.testing.assert_allclose(quantiles[0, :, 0], expected, atol=0.034)
    found = np.quantile(samples[:, 0, 0], [0.1, 0.5])
    np.testing.assert_allclose(found, expected, atol=0.034)


def test_columns_are_found_by_name(regression):
    model = load(regression)
    named = {"bp": X[:, 2], "age": X[:, 0], "bmi": X[:, 1].tolist(), "id": ["a"]}
    np.testing.assert_array_equal(
        model.predict(named)["mean"], model.predict(X)["mean"]
    )


def test_missing_and_text_values_reach_their_tensors(columns):
    model = load(columns)
    answer = model.predict(
        {
            "age": [1, True],
            "blood pressure": [None, 5],
            "sex": ["f", "male"],
            "region": ["", None],
        }
    )
    # A missing number counts 100 and a text its length; the mean's error is 0.01.
    np.testing.assert_allclose(answer["mean"], [[204.0], [20.0]], atol=0.05)
    rows = [[1, np.nan, "f", ""], [1, 5, "male", None]]
    np.testing.assert_array_equal(model.predict(rows)["mean"], answer["mean"])


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pd.NA])
def test_missing_values_are_those_of_pandas(columns, missing):
    model = load(columns)
    inputs = {"age": [1], "blood pressure": [missing], "sex": ["f"]}
    answer = model.predict(inputs | {"region": [missing]})
    np.testing.assert_allclose(answer["mean"], [[204.0]], atol=0.05)
    with pytest.raises(InputError, match="Row 1, column 'sex' has no value"):
        model.predict(inputs | {"region": ["x"], "sex": [missing]})


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_columns_of_a_data_frame_are_found_by_name(columns, dtype):
    frame = pd.DataFrame(
        {
            "region": pd.Series([None, "x"], dtype=dtype),
            "sex": pd.Series(["f", "male"], dtype=dtype),
            "blood pressure": pd.Series([None, 5], dtype="Int64"),
            "age": [1, 1],
            "progression": [7, 8],
        }
    )
    answer = load(columns).predict(frame)
    np.testing.assert_allclose(answer["mean"], [[204.0], [40.0]], atol=0.05)


def test_newest_of_a_directory_of_versions_is_loaded(regression, tmp_path):
    newer = exported_models.write_regression(tmp_path / "newer", bias=7.0)
    for version, model in (("2", regression), ("10", newer), ("latest", regression)):
        (tmp_path / "name" / version).parent.mkdir(exist_ok=True)
        (tmp_path / "name" / version).symlink_to(model)
    older, newest = (tfbbb.load(tmp_path / "name" / version) for version in ("2", "10"))
    found = tfbbb.load(tmp_path / "name").predict(X)["mean"]
    np.testing.assert_array_equal(found, newest.predict(X)["mean"])
    assert not np.array_equal(found, older.predict(X)["mean"])


@pytest.mark.parametrize("path", ["nothing", ""])
def test_where_there_is_no_model_the_path_is_named(tmp_path, path):
    with pytest.raises(ManifestError, match=rf"no model .* Received: '{tmp_path}"):
        tfbbb.load(tmp_path / path)


def test_model_shows_what_it_predicts_from_what(regression):
    assert repr(load(regression)) == (
        "<ExportedModel target='progression', features=['age', 'bmi', 'bp'], "
        "method='weight', num_rows=442>"
    )


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (np.zeros((2, 4)), r"rows of 3 values: 'age', 'bmi', 'bp'. .*shape=\(2, 4\)"),
        (np.zeros(3), r"shape=\(3,\)"),
        ([[1, 2, 3], [1, 2]], r"rows of 3 values"),
        ([[1, 2, 3], [1, np.nan, 3]], r"Row 2, column 'bmi' has no value"),
        ([[1, 2, -np.inf]], r"Row 1, column 'bp' .* finite .* Received: -inf"),
        ([[1, "2", 3]], r"Row 1, column 'bmi' .*, not text\. Received: '2'"),
        ([[1, 2, 10**400]], r"Row 1, column 'bp' .* up to 3\.4e38"),
        ({"age": [1], "bmi": [1]}, r"The column 'bp' is lacking"),
        (
            {"age": [1], "b": [1]},
            r"columns 'bmi' and 'bp' \(is 'b' misspelt\?\) are lacking",
        ),
        ({"age": [1], "bmi": [1], "b": [1]}, r"'bp' \(is 'b' misspelt\?\) is lacking"),
        ({"age": [1, 2], "bmi": [1], "bp": [1]}, r"same number of rows"),
        ({"age": [], "bmi": [], "bp": []}, r"at least one"),
        ({"age": 1, "bmi": [1], "bp": [1]}, r"'age' needs a list .* Received: 1"),
        ({"age": [[1]], "bmi": [1], "bp": [1]}, r"Row 1, column 'age' needs a number"),
    ],
)
def test_matrix_model_names_what_does_not_fit(regression, inputs, message):
    with pytest.raises(InputError, match=message):
        load(regression).predict(inputs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": [None]}, r"Row 1, column 'age' has no value"),
        ({"blood pressure": [np.inf]}, r"Row 1, column 'blood pressure' .* finite"),
        ({"sex": [""]}, r"Row 1, column 'sex' has no value"),
        ({"sex": [3]}, r"Row 1, column 'sex' needs text\. Received: 3"),
        ({"sex": ["\ud800"]}, r"Row 1, column 'sex' needs text that UTF-8 can hold"),
        ({"sex": "male"}, r"'sex' needs a list of values"),
    ],
)
def test_columns_model_names_what_does_not_fit(columns, change, message):
    inputs = {"age": [1], "blood pressure": [1], "sex": ["f"], "region": ["x"]}
    with pytest.raises(InputError, match=message):
        load(columns).predict(inputs | change)


def test_signatures_are_read_as_tensorflow_names_them(regression):
    signatures = read_signatures(regression)
    assert set(signatures) == {"serving_default", "predict", "draws"}
    assert set(signatures["predict"]["inputs"]) == {"inputs", "num_samples", "seed"}
    inputs = signatures["serving_default"]["inputs"]["inputs"]
    assert inputs["dtype"] == "DT_FLOAT"
    assert [d["size"] for d in inputs["tensor_shape"]["dim"]] == ["-1", "3"]


def test_file_is_no_exported_model(tmp_path):
    (tmp_path / "model.keras").write_bytes(b"")
    with pytest.raises(ManifestError, match=r"a `.keras` file is loaded by `keras.mod"):
        tfbbb.load(tmp_path / "model.keras")
