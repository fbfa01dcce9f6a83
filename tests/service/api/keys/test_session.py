import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
import sqlalchemy

from service.api.keys import keyring
from service.api.keys.credential import Scope
from service.shared.database import Database
from service.shared.database.tables import Key
from service.shared.settings import Settings
from tests.service.serving import ADMIN_KEY, serving

KeyWith = Callable[..., dict[str, str]]
URL = "/v1/session"
OF_PAGE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def browser(client: httpx.Client) -> httpx.Client:
    """A client without a key, whose requests come from a page of the service."""
    del client.headers["Authorization"]
    client.headers.update(OF_PAGE)
    return client


def text(headers: dict[str, str]) -> str:
    return headers["Authorization"].removeprefix("Bearer ")


def test_a_key_signs_in_and_out(browser: httpx.Client, key_with: KeyWith) -> None:
    assert browser.get(URL).status_code == 401
    response = browser.post(URL, json={"key": f" {text(key_with(Scope.TRAIN))} "})
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    sent = response.headers["set-cookie"].lower()
    assert "httponly" in sent
    assert "samesite=strict" in sent
    # The test speaks HTTP, over which a secure cookie would never be sent.
    assert "secure" not in sent
    made = response.json()
    assert (made["name"], made["scopes"]) == ("a test", ["metrics", "predict", "train"])
    week = datetime.now(UTC) + timedelta(days=7)
    assert abs(datetime.fromisoformat(made["expires_at"]) - week) < timedelta(hours=1)
    assert browser.get(URL).json() == made
    assert browser.get("/v1/jobs").status_code == 200
    name, token = f"tfbbb-session-{browser.base_url.port}", cookie(browser)
    assert browser.delete(URL).status_code == 204
    assert browser.get("/v1/jobs").status_code == 401
    answer = browser.get("/v1/jobs", headers={"Cookie": f"{name}={token}"})
    assert "session has ended" in answer.json()["error"]
    # As a TLS proxy on this machine says it.
    https = {"X-Forwarded-Proto": "https"}
    response = browser.post(URL, json={"key": ADMIN_KEY}, headers=https)
    assert "secure" in response.headers["set-cookie"].lower()


def test_wrong_keys_get_no_cookie(browser: httpx.Client) -> None:
    wrong: tuple[tuple[dict[str, str], int, str], ...] = (
        ({"key": f"{ADMIN_KEY}0"}, 401, "no such key"),
        ({"key": "nonsense"}, 401, "must be `prefix.secret`"),
        ({}, 400, "key"),
        ({"key": "x" * 5000}, 413, "4096 bytes"),
    )
    for body, status, message in wrong:
        response = browser.post(URL, json=body)
        assert response.status_code == status
        assert message in response.json()["error"]
        assert "set-cookie" not in response.headers


def test_revoked_key_is_refused_and_signs_out(
    browser: httpx.Client, key_with: KeyWith
) -> None:
    headers = key_with(Scope.PREDICT)
    key_id = browser.post(URL, json={"key": text(headers)}).json()["key_id"]
    admin = {"Authorization": f"Bearer {ADMIN_KEY}"}
    assert browser.delete(f"/v1/keys/{key_id}", headers=admin).status_code == 200
    response = browser.get(URL)
    assert response.status_code == 401
    assert "was revoked" in response.json()["error"]
    assert browser.post(URL, json={"key": text(headers)}).status_code == 401
    assert browser.delete(URL).status_code == 204
    assert "Received: no key" in browser.get(URL).json()["error"]


def test_other_pages_can_neither_sign_in_nor_out(client: httpx.Client) -> None:
    assert client.get(URL).json()["scopes"] == ["admin", "metrics", "predict", "train"]
    del client.headers["Authorization"]
    body = {"key": ADMIN_KEY}
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
    ):
        assert client.post(URL, json=body, headers=headers).status_code == 403
        assert client.post(URL, json=body, headers=OF_PAGE).status_code == 200
        assert client.delete(URL, headers=headers).status_code == 403
        # The cookie is there, and other pages may not change anything with it.
        response = client.post("/v1/keys", json={"name": "x"}, headers=headers)
        assert response.status_code == 403
        assert client.get(URL, headers=OF_PAGE).status_code == 200
        assert client.delete(URL, headers=OF_PAGE).status_code == 204


def cookie(client: httpx.Client) -> str:
    (found,) = client.cookies.jar
    return found.value or ""


def test_the_cookie_is_signed_and_is_no_key(
    browser: httpx.Client, key_with: KeyWith
) -> None:
    key = text(key_with(Scope.TRAIN))
    browser.post(URL, json={"key": key})
    token = cookie(browser)
    prefix, _, secret = key.partition(".")
    assert secret not in token
    bearer = {"Authorization": f"Bearer {token}"}
    assert browser.get("/v1/jobs").status_code == 200
    assert browser.get("/v1/jobs", headers=bearer).status_code == 401
    browser.cookies.clear()
    name = f"tfbbb-session-{browser.base_url.port}"
    of_admin = token.replace(prefix, ADMIN_KEY.partition(".")[0])
    for forged in (key, f"{prefix}.{'0' * 43}", of_admin, f"{token}0", "nonsense"):
        answer = browser.get("/v1/jobs", headers={"Cookie": f"{name}={forged}"})
        assert answer.status_code == 401
        assert "session has ended" in answer.json()["error"]


@pytest.fixture
def always_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asks the database about the key of every request."""
    monkeypatch.setattr(keyring, "_KNOWN_SECONDS", 0.0)


@pytest.mark.usefixtures("always_asked")
def test_a_session_ends_with_its_key_and_after_a_week(
    browser: httpx.Client,
    key_with: KeyWith,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end = time.time() + 3600
    headers = key_with(Scope.TRAIN, expires_at=end)
    made = browser.post(URL, json={"key": text(headers)})
    assert datetime.fromisoformat(made.json()["expires_at"]).timestamp() == (
        pytest.approx(end, abs=1e-3)
    )
    monkeypatch.setattr("service.api.keys.keyring._SESSION_SECONDS", -1)
    assert "session has ended" in browser.get(URL).json()["error"]
    monkeypatch.undo()
    assert browser.get(URL).status_code == 200
    with database.writing() as session:
        # As a changed TFBBB_ADMIN_KEY does.
        prefix = text(headers).partition(".")[0]
        row = session.scalars(sqlalchemy.select(Key).filter_by(prefix=prefix)).one()
        row.secret_sha256 = "0" * 64
    assert "session has ended" in browser.get(URL).json()["error"]


def test_services_of_one_database_share_sessions(
    database_url: str, tmp_path: Path
) -> None:
    settings = [
        Settings(data_dir=tmp_path / name, models=tmp_path, database_url=database_url)
        for name in ("one", "two")
    ]
    with serving(settings[0]) as first, serving(settings[1]) as second:
        first.post(URL, json={"key": ADMIN_KEY})
        name = f"tfbbb-session-{second.base_url.port}"
        del second.headers["Authorization"]
        second.headers["Cookie"] = f"{name}={cookie(first)}"
        assert second.get(URL, headers=OF_PAGE).status_code == 200
