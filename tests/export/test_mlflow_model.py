"""MLflow loads what was exported, and predicts as the loaded SavedModel."""

import sys

import mlflow
import mlflow.pyfunc.scoring_server as scoring_server
import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient

import tfbbb
from tests.export.test_predictive import X, network
from tfbbb.layers import DenseVariational
from tfbbb.tables import Schema, preprocessing


def test_the_frame_of_the_training_is_taken(tmp_path):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "rooms": generator.integers(1, 9, 60),
            "floor": pd.array([None, *generator.integers(0, 9, 59)], "Int64"),
            "garden": np.arange(60) % 2 == 0,
            "old": pd.array([None, *(np.arange(59) % 3 == 0)], "boolean"),
            "kind": np.array(["a", "b"])[np.arange(60) % 2],
            "zone": [None, *(np.arange(59) % 4)],
            "area": [np.nan, *generator.normal(size=59)],
            "y": generator.normal(size=60),
        }
    )
    schema = Schema.infer(frame, "y")
    inputs, features = preprocessing(schema)
    live = tfbbb.BayesianModel(inputs, DenseVariational(1)(features))
    live.likelihood.adapt(schema.targets(frame))
    live.export_predictive(tmp_path / "1", schema=schema)
    live.export_predictive(tmp_path / "model", format="mlflow", schema=schema)
    loaded = tfbbb.load(tmp_path / "1")
    model = mlflow.pyfunc.load_model(tmp_path / "model")
    names = [feature.name for feature in loaded.manifest.features]
    assert model.metadata.get_input_schema().input_names() == names
    expected = loaded.predict(frame)["mean"][:, 0]
    np.testing.assert_array_equal(model.predict(frame)["mean"], expected)
    moved = frame.set_index(pd.Index(range(100, 160)))
    found = model.predict(moved, params={"num_samples": 20, "seed": 3})
    assert list(found.index) == list(moved.index)
    others = loaded.predict(frame, 20, 3)
    others["std"] = np.sqrt(others["variance"])
    for name in found.columns:
        np.testing.assert_array_equal(found[name], others[name][:, 0])
    assert list(model.metadata.get_output_schema().input_names()) == [
        *("mean", "std", "epistemic", "aleatoric")
    ]
    # One row, whose missing cells have no type, and columns that are not there.
    one = model.predict(frame[:1])["mean"]
    np.testing.assert_allclose(one, expected[:1], rtol=1e-6)
    found = model.predict(frame.drop(columns=["y", "area", "floor"]))["mean"]
    blank = frame.assign(area=np.nan, floor=None)
    np.testing.assert_array_equal(found, loaded.predict(blank)["mean"][:, 0])

    # As MLflow's own server reads them, with whole numbers and one column too many.
    server = TestClient(scoring_server.init(model))
    asked = frame[:5].drop(columns="area")
    for form in ("split", "records"):
        body = f'{{"dataframe_{form}": {asked.to_json(orient=form)}}}'
        headers = {"Content-Type": "application/json"}
        answer = server.post("/invocations", content=body, headers=headers)
        assert answer.status_code == 200, answer.text
        means = [row["mean"] for row in answer.json()["predictions"]]
        of_rows = loaded.predict(asked.assign(area=np.nan))["mean"][:, 0]
        np.testing.assert_allclose(means, of_rows, rtol=1e-6)


def test_classes_have_a_column_each(tmp_path):
    live = network(tfbbb.likelihoods.Categorical(), 3)
    names = ["width", "height", "depth"]
    live.export_predictive(
        tmp_path / "model",
        format="mlflow",
        feature_names=names,
        classes=["red", "green", "blue"],
    )
    model = mlflow.pyfunc.load_model(tmp_path / "model")
    found = model.predict(pd.DataFrame(X.astype("float64"), columns=names))
    assert list(found.columns) == [
        *("class", "probability_red", "probability_green", "probability_blue"),
        *("entropy", "mutual_information"),
    ]
    probabilities = found[[f"probability_{x}" for x in ("red", "green", "blue")]]
    best = probabilities.to_numpy().argmax(axis=1)
    assert list(found["class"]) == [("red", "green", "blue")[i] for i in best]


def test_nothing_is_left_of_a_failure(tmp_path, monkeypatch):
    live = network(tfbbb.likelihoods.Normal(), 1)
    with pytest.raises(ValueError, match="feature names"):
        live.export_predictive(
            tmp_path / "model", format="mlflow", feature_names=["one"]
        )
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.delitem(sys.modules, "mlflow.pyfunc", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'tfbbb\[mlflow\]'"):
        live.export_predictive(tmp_path / "model", format="mlflow")
    assert list(tmp_path.iterdir()) == []
