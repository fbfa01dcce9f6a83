from datetime import datetime

import httpx
import pytest


def make(client: httpx.Client, **request: object) -> dict[str, object]:
    body = {"name": "a robot", "scopes": ["predict"]} | request
    response = client.post("/v1/keys", json=body)
    assert response.status_code == 201, response.text
    answer: dict[str, object] = response.json()
    return answer


def test_a_key_works_until_it_is_revoked(client: httpx.Client) -> None:
    made = make(client)
    headers = {"Authorization": f"Bearer {made['key']}"}
    assert client.get("/docs", headers=headers).status_code == 200
    assert client.get("/v1/keys", headers=headers).status_code == 403
    revoked = client.delete(f"/v1/keys/{made['id']}")
    assert revoked.status_code == 200
    assert revoked.json()["revoked_at"] is not None
    response = client.get("/docs", headers=headers)
    assert response.status_code == 401
    assert "was revoked" in response.json()["error"]
    assert client.delete(f"/v1/keys/{made['id']}").json() == revoked.json()


def test_keys_are_listed_without_what_is_secret(client: httpx.Client) -> None:
    made = make(client, expires_in_seconds=60)
    response = client.get("/v1/keys")
    newest, preset = response.json()["keys"]
    assert newest == {name: made[name] for name in made if name != "key"}
    made_at, ends_at = (
        datetime.fromisoformat(newest[name]) for name in ("created_at", "expires_at")
    )
    assert (ends_at - made_at).total_seconds() == pytest.approx(60, abs=1)
    assert made_at.tzinfo is not None
    assert preset["name"] == "TFBBB_ADMIN_KEY"
    assert "sha256" not in response.text
    assert str(made["key"]).partition(".")[2] not in response.text


def test_requests_for_no_such_key_are_refused(client: httpx.Client) -> None:
    may_predict = {"name": "x", "scopes": ["predict"]}
    for body in (
        {},
        {"name": "x"},
        may_predict | {"name": ""},
        may_predict | {"scopes": ["root"]},
        may_predict | {"expires_in_seconds": -1},
    ):
        assert client.post("/v1/keys", json=body).status_code == 400, body
    assert client.delete(f"/v1/keys/{'0' * 24}").status_code == 404
    assert client.delete("/v1/keys/x").status_code == 400


def test_the_last_admin_key_can_not_be_revoked(client: httpx.Client) -> None:
    (preset,) = client.get("/v1/keys").json()["keys"]
    response = client.delete(f"/v1/keys/{preset['id']}")
    assert response.status_code == 409
    assert "create another key with the scope admin first" in response.json()["error"]
    make(client, scopes=["admin"])
    assert client.delete(f"/v1/keys/{preset['id']}").status_code == 200
