"""From a table to an answer over HTTP, with networks that were really trained."""

import io
from collections.abc import Iterator
from pathlib import Path

import httpx
import keras
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner

import tfbbb
from service.api.predictions.schemas import TABLE_BODY
from service.shared.settings import Settings
from tests.service.serving import ADMIN_KEY, ask, serving, wait_until_ready
from tfbbb.cli import app
from tfbbb.tables import Schema, preprocessing, samples


def mixed_table() -> pa.Table:
    """Columns of both kinds, with missing values and names TensorFlow can't take."""
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "seed": rng.normal(size=60),
            "2nd pressure": [None, *rng.normal(size=59)],
            "région": ["nord", None, "süd"] * 20,
            "sex": ["f", "m"] * 30,
        }
    )


def train(table: pa.Table, target: str) -> tuple[tfbbb.BayesianModel, Schema]:
    keras.utils.set_random_seed(0)
    schema = Schema.infer(table, target)
    inputs, features = preprocessing(schema)
    hidden = tfbbb.layers.DenseVariational(8, activation="relu")(features)
    outputs = tfbbb.layers.DenseVariational(max(len(schema.classes), 1))(hidden)
    likelihood = "categorical" if schema.classes else "normal"
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    model.compile("adam")
    model.fit(schema.inputs(table), schema.targets(table), epochs=2, verbose=0)
    return model, schema


TABLES = {
    "diabetes": (samples.diabetes(), "progression"),
    "sexes": (mixed_table(), "sex"),
}


@pytest.fixture(scope="module")
def models() -> dict[str, tuple[tfbbb.BayesianModel, Schema]]:
    return {name: train(*table) for name, table in TABLES.items()}


@pytest.fixture(scope="module")
def client(
    models: dict[str, tuple[tfbbb.BayesianModel, Schema]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[httpx.Client]:
    root: Path = tmp_path_factory.mktemp("trained")
    for name, (model, schema) in models.items():
        (root / name).mkdir()
        model.export_predictive(root / name / "1", schema=schema)
    with serving(Settings(models=root)) as client:
        wait_until_ready(client)
        yield client


def test_examples_of_the_documentation_are_answered(client: httpx.Client) -> None:
    examples = TABLE_BODY["content"]["application/json"]["examples"]
    for example in examples.values():
        response = ask(client, "diabetes", example["value"])
        assert response.status_code == 200, response.text


def test_the_command_line_scores_targets_as_they_are_written(
    client: httpx.Client,
    models: dict[str, tuple[tfbbb.BayesianModel, Schema]],
    tmp_path: Path,
) -> None:
    name = "sexes"
    model, schema = models[name]
    table = TABLES[name][0].slice(0, 20)
    pyarrow.csv.write_csv(table, tmp_path / "rows.csv")
    options = ("--log-prob", "--num-samples", "400")
    result = CliRunner().invoke(
        app,
        ["remote", "predict", name, str(tmp_path / "rows.csv"), *options],
        env={"TFBBB_URL": str(client.base_url), "TFBBB_KEY": ADMIN_KEY},
    )
    assert result.exit_code == 0, result.output
    found = pyarrow.csv.read_csv(io.BytesIO(result.stdout_bytes))["log_prob"]
    predictive = model.predictive(schema.inputs(table), num_samples=400, seed=1)
    expected = predictive.log_prob(schema.targets(table))
    assert np.ptp(expected) > 0.5
    # Draws of their own; a training of two epochs leaves the posterior narrow.
    np.testing.assert_allclose(found, expected, atol=0.1)
