"""Notes about models and versions over HTTP."""

from typing import Any

import httpx
import pytest

MODEL = "/v1/models/diabetes"


def write(client: httpx.Client, place: str, **note: str) -> Any:
    response = client.put(f"{place}/note", json=note)
    assert response.status_code == 200, response.text
    return response.json()


def test_notes_are_kept_beside_models_and_versions(client: httpx.Client) -> None:
    assert client.get(f"{MODEL}/notes").json() == {"model": None, "versions": {}}
    about = {"title": "Shop", "text": "For the shop."}
    assert write(client, MODEL, title=" Shop ", text="For the shop.") == about
    write(client, f"{MODEL}/versions/2", title="with weather")
    of_version = {"title": "with weather", "text": ""}
    found = client.get(f"{MODEL}/notes").json()
    assert found == {"model": about, "versions": {"2": of_version}}
    assert client.get(f"{MODEL}/versions/2").json()["note"] == of_version
    assert client.get(f"{MODEL}/versions/1").json()["note"] is None
    listed = client.get("/v1/models").json()["models"]
    notes = {model["name"]: model["note"] for model in listed}
    assert notes["diabetes"] == about
    write(client, MODEL, title="", text=" ")
    write(client, f"{MODEL}/versions/2")
    assert client.get(f"{MODEL}/notes").json() == {"model": None, "versions": {}}


@pytest.mark.parametrize(
    ("place", "note", "status", "message"),
    [
        ("nothing", {}, 404, "nothing"),
        ("diabetes/versions/99", {}, 404, "99"),
        ("diabetes", {"title": "x" * 101}, 400, "title"),
        ("diabetes", {"titel": "x"}, 400, "titel"),
    ],
)
def test_a_wrong_note_is_refused(
    client: httpx.Client, place: str, note: Any, status: int, message: str
) -> None:
    response = client.put(f"/v1/models/{place}/note", json=note)
    assert response.status_code == status
    assert message in response.json()["error"]
