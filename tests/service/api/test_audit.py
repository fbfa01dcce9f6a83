import pytest

from service.shared.settings import Settings
from tests.service.sandboxed import reading_here
from tests.service.serving import serving

TABLE = b"area,price\n" + b"".join(b"%d,%d\n" % (n, 2 * n) for n in range(30))


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    models = tmp_path_factory.mktemp("models")
    with reading_here(), serving(Settings(models=models)) as c:
        yield c


def changes(client, **query):
    response = client.get("/v1/audit", params=query)
    assert response.status_code == 200, response.text
    return response.json()["changes"]


def test_who_uploaded_and_who_deleted_are_told_by_name(client):
    made = client.post("/v1/keys", json={"name": "loader", "scopes": ["train"]}).json()
    loader = {"Authorization": f"Bearer {made['key']}", "X-Request-Id": "upload-7"}
    dataset = client.post(
        "/v1/datasets?name=houses.csv", content=TABLE, headers=loader
    ).json()
    assert client.delete(f"/v1/datasets/{dataset['id']}").status_code == 204
    deleted, uploaded = changes(client, kind="dataset")
    assert uploaded["subject"] == deleted["subject"] == dataset["id"]
    assert (uploaded["actor"], uploaded["action"]) == ("loader", "upload")
    assert (uploaded["key_id"], uploaded["request_id"]) == (made["id"], "upload-7")
    assert uploaded["details"]["name"] == "houses.csv"
    assert (deleted["actor"], deleted["action"]) == ("TFBBB_ADMIN_KEY", "delete")
    (created,) = changes(client, kind="key", subject=made["id"])
    assert (created["actor"], created["action"]) == ("TFBBB_ADMIN_KEY", "create")
    assert made["key"].partition(".")[2] not in str(created)
    response = client.get("/v1/audit", headers=loader)
    assert response.status_code == 403


def test_changes_come_in_pages_newest_first(client):
    for number in range(3):
        body = {"name": f"key {number}", "scopes": ["predict"]}
        key = client.post("/v1/keys", json=body).json()
        client.delete(f"/v1/keys/{key['id']}")
    seen = changes(client, kind="key", limit=500)
    assert [change["action"] for change in seen[:4]] == ["revoke", "create"] * 2
    page = client.get("/v1/audit?limit=2&kind=key").json()
    rest = changes(client, kind="key", limit=500, cursor=page["next_cursor"])
    assert page["changes"] + rest == seen
    assert client.get("/v1/audit?cursor=x").status_code == 400
