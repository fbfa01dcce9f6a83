"""Predictions and labels through `tfbbb.client` and `tfbbb remote`."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from tests.service.serving import ADMIN_KEY
from tfbbb.cli import app
from tfbbb.client import Client, ServiceError

ROWS = [[1.0, 2.0, 3.0], [0.5, 0.0, -0.5]]
NAMES = ["age", "bmi", "bp"]
PATIENTS = {
    "age": [40.0, 50.0],
    "blood pressure": [90.0, None],
    "sex": ["f", "m"],
    "region": ["north", None],
}


@pytest.fixture
def service(client):
    with Client(str(client.base_url), ADMIN_KEY) as asking:
        yield asking


@pytest.fixture
def remote(client):
    variables = {"TFBBB_URL": str(client.base_url), "TFBBB_KEY": ADMIN_KEY}
    runner = CliRunner(env=variables)
    return lambda *arguments: runner.invoke(app, ["remote", *map(str, arguments)])


def columns(rows):
    return dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.parametrize(
    "table",
    [
        ROWS,
        np.array(ROWS),
        columns(ROWS),
        {name: np.array(values) for name, values in columns(ROWS).items()},
        [dict(zip(NAMES, row, strict=True)) for row in ROWS],
        pa.table(columns(ROWS)),
        pd.DataFrame(columns(ROWS), index=[7, 8]),
        pa.table(columns(ROWS)).append_column("price", [[1, 2]]),
    ],
    ids=["lists", "matrix", "columns", "arrays", "rows", "arrow", "pandas", "more"],
)
def test_rows_in_any_form_have_the_same_answer(service, table):
    model = service.model("diabetes")
    prediction = model.predict(table, num_samples=30, seed=5)
    expected = model.predict(ROWS, num_samples=30, seed=5)
    assert (len(prediction), prediction.version, prediction.num_samples) == (2, 2, 30)
    for name in ("mean", "variance", "epistemic", "aleatoric", "mean_standard_error"):
        np.testing.assert_array_equal(
            getattr(prediction, name), getattr(expected, name)
        )
    np.testing.assert_allclose(prediction.mean[:, 0], [12.0, 0.0], atol=0.1)
    np.testing.assert_allclose(
        prediction.std**2, prediction.epistemic + prediction.aleatoric
    )
    assert prediction.probabilities is prediction.quantiles is prediction.samples
    assert prediction.samples is None


def test_classes_come_by_name(service):
    prediction = service.model("iris").predict([[9.0, 0.0, 0.0], [0.0, 0.0, 9.0]])
    assert prediction.classes == ("setosa", "versicolor", "virginica")
    assert list(prediction.labels) == ["setosa", "virginica"]
    np.testing.assert_allclose(prediction.probabilities.sum(axis=1), 1, rtol=1e-6)
    assert prediction.mean is None


def test_quantiles_draws_intervals_and_sets_come_by_their_levels(service):
    levels = {"intervals": [0.5, 0.8], "quantiles": [0.1, 0.5, 0.9]}
    prediction = service.model("diabetes").predict(
        ROWS, **levels, num_samples=40, return_samples=True
    )
    for bound, level in zip(prediction.interval(0.8), (0.1, 0.9), strict=True):
        np.testing.assert_allclose(bound, prediction.quantile(level))
    assert (prediction.quantile(0.1) < prediction.quantile(0.5)).all()
    assert prediction.samples.shape == (40, 2, 1)
    with pytest.raises(ValueError, match=r"Received: level=0\.2"):
        prediction.quantile(0.2)
    found = service.model("iris").predict(ROWS, prediction_sets=[0.5, 0.99])
    assert found.set_levels.tolist() == [0.5, 0.99]
    assert [len(sets) for sets in found.prediction_sets] == [2, 2]
    assert "virginica" in found.prediction_sets[0][0]
    with pytest.raises(ValueError, match="Received: 1 targets and 2 rows"):
        service.model("iris").predict(ROWS, targets=["setosa"])


def test_tables_are_predicted_block_by_block(service):
    values = np.random.default_rng(0).normal(size=(9000, 3)).astype(np.float32)
    table = pa.table(dict(zip(NAMES, values.T, strict=True)))
    model = service.model("diabetes")
    # The service allows 100 000 rows × draws: blocks of 8192 rows are halved.
    blocks = list(model.predict_blocks(table, num_samples=20, seed=1))
    assert [len(block) for block in blocks] == [4096, 4096, 808]
    expected = model.predict(values, num_samples=20, seed=1).mean
    np.testing.assert_array_equal(np.concatenate([b.mean for b in blocks]), expected)
    bad = table.set_column(0, "age", pa.array([*values[:-1, 0], None]))
    with pytest.raises(ServiceError, match=r"In rows 8193 to 9000: Row 808, column"):
        model.predict(bad, num_samples=20)


def test_a_version_is_asked_by_its_number_or_its_label(service):
    model = service.model("diabetes")
    assert model.predict(ROWS, version=1).version == 1
    assert model.predict(ROWS, label="latest").version == 2
    model.set_label("champion", 1)
    try:
        assert model.labels() == {"latest": 2, "champion": 1}
        assert model.predict(ROWS, label="champion").version == 1
    finally:
        model.delete_label("champion")
    with pytest.raises(ServiceError) as refusal:
        model.predict(ROWS, version=9)
    assert refusal.value.status == 404
    with pytest.raises(ValueError, match="`version` or `label`"):
        model.predict(ROWS, version=1, label="latest")


def test_the_command_line_predicts_as_the_client_does(service, remote, tmp_path):
    path = tmp_path / "patients.csv"
    pyarrow.csv.write_csv(pa.table(PATIENTS), path)
    options = ("--num-samples", 50, "--seed", 3, "--level", 0.8)
    result = remote("predict", "patients", path, *options)
    assert result.exit_code == 0, result.output
    shown = pyarrow.csv.read_csv(io.BytesIO(result.stdout_bytes))
    output = tmp_path / "answers.parquet"
    written = remote("predict", "patients", path, *options, "--output", output)
    told = f"2 rows written to {output}\npredicted by version 1 of patients\nNext: "
    assert written.stderr.startswith(told)
    answers = pyarrow.parquet.read_table(output)
    assert (
        answers.column_names
        == shown.column_names
        == [*("mean", "std", "lower_80", "upper_80", "epistemic", "aleatoric")]
    )
    prediction = service.model("patients").predict(
        PATIENTS, num_samples=50, seed=3, quantiles=[0.1, 0.9]
    )
    for name, expected in {
        "mean": prediction.mean,
        "std": prediction.std,
        "lower_80": prediction.quantile(0.1),
        "upper_80": prediction.quantile(0.9),
    }.items():
        np.testing.assert_allclose(answers[name], expected[:, 0], rtol=1e-6)
        # As text they are rounded.
        tolerance = 1e-4 * prediction.std[:, 0]
        assert np.all(np.abs(shown[name] - expected[:, 0]) <= tolerance)


def test_labels_move_and_stand_beside_their_model(service, remote):
    model = service.model("diabetes")
    model.set_label("live", 1)
    assert model.labels()["live"] == 1
    result = remote("label", "diabetes", "live", "2")
    assert result.exit_code == 0, result.output
    assert "live is version 2 of diabetes" in result.output
    assert remote("label", "diabetes", "live", "x").exit_code == 2
    lines = remote("models").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["diabetes", "iris", "patients"]
    assert lines[1].endswith("live 2")
    assert model.labels()["live"] == 2
    assert remote("delete", "label", "diabetes", "live").exit_code == 0
