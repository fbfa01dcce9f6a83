"""Files with what came true."""

import io

import httpx
import numpy as np
import pyarrow as pa
import pytest

from tfbbb.tables.format import Format
from tfbbb.tables.writing import write_rows

GENERATOR = np.random.default_rng(2)
URL = "/v1/models/{}/versions/{}/feedback"


def rows_of(client: httpx.Client, model: str, num_rows: int) -> pa.Table:
    """Rows of a model without targets."""
    described = client.get(f"/v1/models/{model}").json()["description"]
    names = [feature["name"] for feature in described["features"]]
    return pa.table({name: GENERATOR.normal(size=num_rows) for name in names})


def send(
    client: httpx.Client, table: pa.Table, format: Format, model: str, version: int
) -> httpx.Response:
    file = io.BytesIO()
    write_rows(table.to_reader(), file, format)
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": 'attachment; filename="sold"',
    }
    place = f"{URL.format(model, version)}/file"
    return client.post(place, content=file.getvalue(), headers=headers)


def test_a_file_counts_once_as_its_rows_would(client: httpx.Client) -> None:
    table = rows_of(client, "numbers", 30)
    targets = [None if row == 3 else float(row) / 10 for row in range(30)]
    file = table.append_column("y", pa.array(targets)).append_column(
        "id", pa.array([f"a{row}" for row in range(30)])
    )
    answer = send(client, file, "xlsx", "numbers", 2)
    assert answer.status_code == 200, answer.text
    counted = {"num_rows": {"2": 29}, "is_new": True, "left_out": 1, "remarks": []}
    assert answer.json() == {"model_name": "numbers", **counted}
    again = send(client, file, "xlsx", "numbers", 2).json()
    assert (again["is_new"], again["num_rows"]) == (False, {"2": 29})
    found = client.get(URL.format("numbers", 2)).json()
    assert found["num_rows"] == 29
    known = [row for row in range(30) if row != 3]
    body = {
        "instances": table.take(known).to_pylist(),
        "targets": [targets[row] for row in known],
    }
    assert client.post(URL.format("numbers", 1), json=body).status_code == 200
    other = client.get(URL.format("numbers", 1)).json()
    for name, figure in other["figures"].items():
        assert found["figures"][name]["mean"] == pytest.approx(figure["mean"], 1e-4)
    blocks = found["over_time"]
    assert [block["num_rows"] for block in blocks] == [10, 10, 9]
    coverage = sum(b["figures"]["coverage_90"] * b["num_rows"] for b in blocks) / 29
    assert coverage == pytest.approx(found["figures"]["coverage_90"]["mean"])


def test_an_alarm_of_drift_is_in_the_list_of_models(client: httpx.Client) -> None:
    table = rows_of(client, "numbers", 200)
    far = table.append_column("y", pa.array([1000.0 + row for row in range(200)]))
    assert send(client, far, "parquet", "numbers", 2).status_code == 200
    assert client.get(URL.format("numbers", 2)).json()["drift"]["alarm"]
    listed = {m["name"]: m for m in client.get("/v1/models").json()["models"]}
    assert listed["numbers"]["drifted"] == ["2"]
    assert listed["counts"]["drifted"] == []
    assert client.get("/v1/models/numbers").json()["drifted"] == ["2"]


def test_classes_and_what_cannot_be_read_are_told(client: httpx.Client) -> None:
    table = rows_of(client, "classes", 3)
    described = client.get("/v1/models/classes").json()["description"]
    labels = [described["classes"][0], "unknown", None]
    file = table.append_column("y", pa.array(labels))
    answer = send(client, file, "csv", "classes", 1).json()
    assert (answer["num_rows"], answer["left_out"]) == ({"1": 1}, 2)
    assert "is a class unseen in training" in answer["remarks"][0]
    missing = send(client, table, "csv", "classes", 1)
    assert missing.status_code == 422
    assert "lacks the column 'y' with what came true" in missing.json()["error"]
    nothing = table.append_column("y", pa.array([None, None, "x"]))
    empty = send(client, nothing, "csv", "classes", 1)
    assert (empty.status_code, "No row has" in empty.text) == (422, True), empty.text
    # A refused file counts nothing, and may be sent again.
    assert client.get(URL.format("classes", 1)).json()["num_rows"] == 1
