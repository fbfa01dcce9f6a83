import httpx
import pytest

from tests.service.serving import wait_until_ready

AVAILABLE = {"error_code": "OK", "error_message": ""}


def test_every_model_is_listed_with_its_versions(client: httpx.Client) -> None:
    wait_until_ready(client)
    models = {m["name"]: m for m in client.get("/v1/models").json()["models"]}
    assert list(models) == ["diabetes", "iris", "patients"]
    assert models["iris"]["task"] == "classification"
    assert models["diabetes"]["target"] == "progression"
    assert models["diabetes"]["versions"][0] == {
        "version": "2",
        "state": "AVAILABLE",
        "status": AVAILABLE,
    }
    newest = models["diabetes"]["newest"]
    assert (newest["version"], newest["metrics"]) == ("2", {"rmse": 54.0})


def test_status_is_that_of_tensorflow_serving(client: httpx.Client) -> None:
    wait_until_ready(client)
    answer = client.get("/v1/models/iris").json()
    assert answer["model_version_status"] == [
        {"version": "7", "state": "AVAILABLE", "status": AVAILABLE}
    ]
    assert answer["description"]["classes"] == ["setosa", "versicolor", "virginica"]


def test_version_is_described_with_what_it_reads(client: httpx.Client) -> None:
    description = client.get("/v1/models/patients/versions/1").json()["description"]
    feature = description["features"][1]
    assert {
        name: feature[name] for name in ("name", "kind", "missing", "notation")
    } == {
        "name": "blood pressure",
        "kind": "numeric",
        "missing": True,
        "notation": None,
    }
    assert isinstance(feature["imputed"], bool)
    assert description["metrics"] == {"rmse": 54.0}


@pytest.mark.parametrize(("path", "version"), [("", "2"), ("/versions/1", "1")])
def test_metadata_hold_signatures_and_manifest(
    client: httpx.Client, path: str, version: str
) -> None:
    answer = client.get(f"/v1/models/diabetes{path}/metadata").json()
    assert answer["model_spec"]["version"] == version
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    assert signatures["predict"]["inputs"]["seed"]["dtype"] == "DT_INT32"
    assert answer["metadata"]["manifest"]["num_rows"] == 442
