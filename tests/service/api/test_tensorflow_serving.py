"""The examples of TensorFlow Serving's documentation of its REST API, and its rules.

https://github.com/tensorflow/serving/blob/master/tensorflow_serving/g3doc/api_rest.md
"""

import shutil

import httpx
import numpy as np
import pytest

from service.shared.settings import Settings
from tests.service.serving import serving


@pytest.fixture(scope="module")
def served(exported_models, tmp_path_factory):
    """The model of the examples, half_plus_three, beside others of the tests."""
    root = tmp_path_factory.mktemp("models")
    shutil.copytree(exported_models / "half_plus_three", root / "half_plus_three")
    shutil.copytree(exported_models / "saved_models" / "patients", root / "patients")
    with serving(Settings(models=root)) as client:
        yield client


def post(client, path, body):
    """Sends a body as `curl -d` does."""
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    content = httpx.Request("POST", "http://x", json=body).content
    answer = client.post(f"/v1/models/{path}", content=content, headers=headers)
    assert answer.headers["content-type"] == "application/json"
    return answer.status_code, answer.json()


def test_status_is_that_of_the_example(served):
    status = {"error_code": "OK", "error_message": ""}
    expected = [{"version": "123", "state": "AVAILABLE", "status": status}]
    for path in ("", "/versions/123", "/labels/latest"):
        answer = served.get(f"/v1/models/half_plus_three{path}").json()
        assert answer["model_version_status"] == expected


def test_metadata_name_the_signatures(served):
    answer = served.get("/v1/models/half_plus_three/metadata").json()
    spec = answer["model_spec"]
    assert spec == {"name": "half_plus_three", "signature_name": "", "version": "123"}
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    assert signatures["serving_default"]["inputs"]["inputs"]["dtype"] == "DT_FLOAT"


@pytest.mark.parametrize(
    ("path", "body", "key"),
    [
        ("/versions/123", {"instances": [1.0, 2.0, 5.0]}, "predictions"),
        ("/labels/latest", {"instances": [[1.0], [2.0], [5.0]]}, "predictions"),
        ("", {"instances": [{"inputs": [x]} for x in (1, 2, 5)]}, "predictions"),
        ("", {"instances": [{"x": x} for x in (1.0, 2.0, 5.0)]}, "predictions"),
        ("", {"inputs": [[1.0], [2.0], [5.0]]}, "outputs"),
        ("", {"inputs": {"inputs": [[1.0], [2.0], [5.0]]}}, "outputs"),
        ("", {"inputs": {"x": [1.0, 2, 5]}, "signature_name": ""}, "outputs"),
    ],
)
def test_rows_and_columns_predict(served, path, body, key):
    status, answer = post(served, f"half_plus_three{path}:predict", body)
    assert status == 200
    if key == "predictions":
        means = [row["mean"] for row in answer[key]]
    else:
        means = answer[key]["mean"]
    # The mean of 100 draws has an error of 0.01: five of those.
    np.testing.assert_allclose(means, [[3.5], [4.0], [5.5]], atol=0.05)
