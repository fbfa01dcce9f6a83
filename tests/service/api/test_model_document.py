"""The OpenAPI document of one model."""

from typing import Any

import httpx
import jsonschema_rs
import pytest

from service.api.predictions.model_document import model_document
from service.shared.model_messages import DescribedVersion, Metadata
from tests.service.serving import ask


@pytest.mark.parametrize("model", ["diabetes", "patients", "iris"])
def test_example_row_is_predicted(client: httpx.Client, model: str) -> None:
    answer = client.get(f"/v1/models/{model}/openapi.json")
    assert answer.status_code == 200
    document = answer.json()
    schemas = document["components"]["schemas"]
    assert list(document["paths"]) == [f"/v1/models/{model}:predict"]
    response = ask(client, model, {"instances": [schemas["Row"]["example"]]})
    assert response.status_code == 200
    for name, value in (
        ("PredictRequest", {"instances": [schemas["Row"]["example"]]}),
        ("PredictResponse", response.json()),
    ):
        reference = {"$ref": f"#/components/schemas/{name}"}
        jsonschema_rs.validate(reference | {"components": {"schemas": schemas}}, value)


def test_rows_of_a_wrong_type_do_not_fit(client: httpx.Client) -> None:
    document = client.get("/v1/models/patients/openapi.json").json()
    row = document["components"]["schemas"]["Row"]
    assert row["properties"] == {
        "age": {"type": "number"},
        "blood pressure": {"type": ["number", "null"]},
        "sex": {"type": "string"},
        "region": {"type": ["string", "null"]},
    }
    assert not jsonschema_rs.is_valid(row, row["example"] | {"age": "old"})


def test_ranges_and_categories_of_training_are_told() -> None:
    common = {"missing": False, "imputed": False, "notation": None, "categories": None}
    features: list[dict[str, Any]] = [
        {"name": "area", "kind": "numeric", "low": 20.5, "high": 80.0},
        {"name": "rooms", "kind": "numeric", "low": 1.0, "high": 6.0},
        {"name": "sold", "kind": "date", "low": 0.0, "high": 86400.0},
        {"name": "street", "kind": "categorical", "low": None, "high": None},
    ]
    features = [common | feature for feature in features]
    features[3]["categories"] = ["park road", "mill lane"]
    manifest = {"features": features, "target": "price"}
    spec = DescribedVersion(name="houses", signature_name="", version="2")
    document = model_document(
        Metadata(model_spec=spec, metadata={"manifest": manifest})
    )
    row = document["components"]["schemas"]["Row"]
    assert row["example"] == {
        **{"area": 50.25, "rooms": 3, "sold": 43200, "street": "park road"}
    }
    assert row["properties"]["area"]["description"] == "In training from 20.5 to 80."
    assert row["properties"]["sold"]["type"] == ["number", "string"]
    assert row["properties"]["street"]["examples"] == ["park road", "mill lane"]
