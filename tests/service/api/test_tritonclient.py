"""The client of the Open Inference Protocol against the service, unchanged.

The client adds to the headers that it is given, so each call gets a copy.
"""

import json

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from tests.service.serving import AS_ADMIN, ask
from tfbbb.export.reader import load
from tfbbb.version import __version__, commit

ROWS = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -0.5]], dtype=np.float32)


@pytest.fixture
def server(client):
    url = client.base_url
    with triton.InferenceServerClient(f"{url.host}:{url.port}") as server:
        yield server


def tensor(name, values, binary=True):
    datatype = {"f": "FP32", "O": "BYTES", "i": "INT64"}[values.dtype.kind]
    given = triton.InferInput(name, list(values.shape), datatype)
    given.set_data_from_numpy(values, binary_data=binary)
    return given


def patients(age, pressure):
    n = len(age)
    return [
        tensor("age", np.array(age, np.float32)),
        tensor("blood pressure", np.array(pressure, np.float32).reshape(n, 1)),
        tensor("sex", np.array(["f"] * n, object)),
        # An empty text is no value.
        tensor("region", np.array(["", *["nörth"] * (n - 1)], object), binary=False),
    ]


def test_service_is_live_and_ready(server):
    # Without a key, as load balancers ask.
    assert server.is_server_live()
    assert server.is_server_ready()
    assert server.is_model_ready("iris", headers=dict(AS_ADMIN))
    assert server.is_model_ready("diabetes", "1", headers=dict(AS_ADMIN))
    assert not server.is_model_ready("nothing", headers=dict(AS_ADMIN))
    assert not server.is_model_ready("diabetes", "9", headers=dict(AS_ADMIN))


def test_metadata_of_the_service_and_of_models(server):
    assert server.get_server_metadata(headers=dict(AS_ADMIN)) == {
        "name": "tfbbb",
        "version": __version__,
        "commit": commit(),
        "extensions": ["binary_tensor_data"],
    }
    metadata = server.get_model_metadata("diabetes", headers=dict(AS_ADMIN))
    assert metadata["versions"] == ["1", "2"]
    assert metadata["platform"] == "tensorflow_savedmodel"
    (inputs,) = metadata["inputs"]
    assert inputs == {"name": "inputs", "datatype": "FP32", "shape": [-1, 3]}
    metadata = server.get_model_metadata("iris", headers=dict(AS_ADMIN))
    assert json.loads(metadata["parameters"]["classes"])[0] == "setosa"
    outputs = {given["name"]: given["datatype"] for given in metadata["outputs"]}
    assert outputs["class"] == "BYTES"
    assert outputs["probabilities"] == "FP32"


@pytest.mark.parametrize(("binary_in", "binary_out"), [(True, False), (False, True)])
def test_answer_is_that_of_the_saved_model(server, saved_models, binary_in, binary_out):
    names = ("variance", "mean", "quantiles")
    answer = server.infer(
        "diabetes",
        [tensor("inputs", ROWS, binary_in)],
        model_version="1",
        request_id="seven",
        outputs=[triton.InferRequestedOutput(name, binary_out) for name in names],
        parameters={"num_samples": 30, "seed": 5, "quantiles": "0.1,0.9"},
        headers=dict(AS_ADMIN),
    )
    described = answer.get_response()
    assert described["id"] == "seven"
    assert described["model_version"] == "1"
    calibration = described["parameters"].pop("calibration")
    assert calibration.startswith('{"quantiles":"none')
    assert described["parameters"] == {"num_samples": 30}
    assert tuple(output["name"] for output in described["outputs"]) == names
    model = load(saved_models / "diabetes" / "1")
    expected = model.predict(ROWS, 30, 5)
    expected["quantiles"] = model.ask("quantiles", ROWS, [0.1, 0.9], 30, 5)
    for name in names:
        np.testing.assert_array_equal(
            np.asarray(answer.as_numpy(name), np.float32), expected[name]
        )


def test_columns_and_missing_values_are_inputs(client, server):
    inputs = patients([50.0, 60.0], [np.nan, 80.0])
    answer = server.infer("patients", inputs, headers=dict(AS_ADMIN))
    rows = [[50, None, "f", None], [60, 80, "f", "nörth"]]
    expected = ask(client, "patients", {"instances": rows}).json()["predictions"]
    np.testing.assert_array_equal(
        answer.as_numpy("mean"), np.float32([row["mean"] for row in expected])
    )
    assert answer.get_output("warnings") is None


def test_classes_and_sets_are_outputs(server):
    rows = np.array([[2.0, 2.0, 0.0], [0.0, 9.0, 0.0]], np.float32)
    answer = server.infer(
        "iris",
        [tensor("inputs", rows)],
        parameters={"prediction_sets": "0.5,0.9", "return_samples": True},
        headers=dict(AS_ADMIN),
    )
    assert answer.as_numpy("class").tolist() in (
        [b"setosa", b"versicolor"],
        [b"versicolor", b"versicolor"],
    )
    sets = answer.as_numpy("prediction_sets")
    assert sets.dtype == bool
    assert sets[:, 1].tolist() == [[True, True, False], [False, True, False]]
    assert answer.as_numpy("samples").shape == (2, 100)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": [tensor("inputs", ROWS[:, :2])]}, "rows of 3 values"),
        ({"parameters": {"quantiles": "0.1,x"}}, "`parameters.quantiles.1`"),
        ({"outputs": [triton.InferRequestedOutput("meen")]}, "no output 'meen'"),
    ],
)
def test_mistake_is_described(server, changes, message):
    given = {"inputs": [tensor("inputs", ROWS)], "headers": dict(AS_ADMIN)} | changes
    with pytest.raises(InferenceServerException, match=message):
        server.infer("diabetes", **given)
