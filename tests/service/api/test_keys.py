"""Keys, their scopes, and the sessions of browsers."""

import base64
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from fastapi import Response
from fastapi.testclient import TestClient
from sqlalchemy import select

from service.api.keys.authentication import Authentication
from service.api.keys.credential import Scope, generate_credential, split_credential
from service.api.keys.keyring import ANYONE, Keyring
from service.api.keys.repository import (
    add_key,
    create_key,
    is_usable,
    list_keys,
    preset_admin_key,
    revoke_key,
)
from service.shared.database import Database, create_tables
from service.shared.database.tables import Key
from service.shared.errors import KeyNameInUse, LastAdminKey, Unauthenticated
from service.shared.settings import Settings
from tests.service.postgresql import new_database
from tests.service.serving import ADMIN_KEY, refusal, visiting
from tests.waiting import wait_until

URL = "/v1/session"
OF_PAGE = {"Sec-Fetch-Site": "same-origin"}
FIRST = "ci.0123456789abcdef0123456789abcdef"
SECOND = "ci.fedcba9876543210fedcba9876543210"

_numbers = itertools.count()


def bearer(text):
    return {"Authorization": f"Bearer {text}"}


def make(client, scope="predict", **fields):
    """Creates a key with a name of its own."""
    body = {"name": f"robot {next(_numbers)}", "scopes": [scope]} | fields
    response = client.post("/v1/keys", json=body)
    assert response.status_code == 201, response.text
    return response.json()


@pytest.fixture
def browser(client):
    """A client without a key, whose requests come from a page of the service."""
    with visiting(client, headers=OF_PAGE) as browser:
        yield browser


def cookie(client):
    (found,) = client.cookies.jar
    return found.value or ""


def test_generated_secrets_have_256_bits_and_differ():
    secrets = {generate_credential().partition(".")[2] for _ in range(100)}
    assert len(secrets) == 100
    assert {len(base64.urlsafe_b64decode(f"{secret}=")) for secret in secrets} == {32}


@pytest.mark.parametrize(
    "text", ["", "no-dot", f".{'s' * 32}", f"a b.{'c' * 32}", "ci.changeme"]
)
def test_other_forms_are_refused_without_being_repeated(text):
    with pytest.raises(Unauthenticated, match=r"must be `prefix\.secret`") as refusal:
        split_credential(text)
    assert not text or text not in str(refusal.value)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("Bearer", "must be `prefix.secret`"),
        ("Basic dGVzdHM6eA==", "Bearer prefix.secret`. Received: the scheme 'Basic'"),
        (f"Bearer {ADMIN_KEY}0", "no such key"),
        ("Bearer other.0123456789abcdef0123456789abcdef", "no such key"),
    ],
)
def test_wrong_keys_are_refused(client, header, message):
    # Known by now, so that the wrong ones meet the key that was kept.
    assert client.get("/docs").status_code == 200
    response = client.get("/docs", headers={"Authorization": header})
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert message in response.json()["error"]
    assert ADMIN_KEY not in response.text


def test_a_key_works_until_it_is_revoked(client):
    made = make(client)
    headers = bearer(made["key"])
    assert client.get("/docs", headers=headers).status_code == 200
    assert client.get("/v1/keys", headers=headers).status_code == 403
    revoked = client.delete(f"/v1/keys/{made['id']}")
    assert revoked.json()["revoked_at"] is not None
    response = client.get("/docs", headers=headers)
    assert "was revoked" in refusal(response, 401)
    assert client.delete(f"/v1/keys/{made['id']}").json() == revoked.json()


def test_keys_are_listed_without_what_is_secret(client):
    made = make(client, expires_in_seconds=60)
    response = client.get("/v1/keys")
    newest, *_, preset = response.json()["keys"]
    assert newest == {name: made[name] for name in made if name != "key"}
    made_at, ends_at = (
        datetime.fromisoformat(newest[name]) for name in ("created_at", "expires_at")
    )
    assert (ends_at - made_at).total_seconds() == pytest.approx(60, abs=1)
    assert made_at.tzinfo is not None
    assert preset["name"] == "TFBBB_ADMIN_KEY"
    assert "sha256" not in response.text
    assert made["key"].partition(".")[2] not in response.text


def test_the_last_use_is_written_once_a_minute(client):
    made = make(client)

    def last_use():
        keys = client.get("/v1/keys").json()["keys"]
        return next(key["last_used_at"] for key in keys if key["id"] == made["id"])

    assert last_use() is None
    client.get("/docs", headers=bearer(made["key"]))
    wait_until(lambda: last_use() is not None)
    used = last_use()
    client.get("/docs", headers=bearer(made["key"]))
    assert last_use() == used


def test_requests_for_no_such_key_are_refused(client):
    may_predict = {"name": "x", "scopes": ["predict"]}
    for body in (
        {"name": "x"},
        may_predict | {"name": ""},
        may_predict | {"scopes": ["root"]},
        may_predict | {"expires_in_seconds": -1},
    ):
        assert client.post("/v1/keys", json=body).status_code == 400, body
    assert client.delete(f"/v1/keys/{'0' * 24}").status_code == 404
    assert client.delete("/v1/keys/x").status_code == 400


def test_usable_keys_have_different_names(client, database):
    made = make(client)
    body = {"name": made["name"], "scopes": ["predict"]}
    response = client.post("/v1/keys", json=body)
    assert response.status_code == 409
    assert response.json()["error"] == (
        f"The key {made['prefix']} has this name: choose another name, or revoke that "
        f"key first. Received: {made['name']!r}"
    )
    first, _ = create_key(database, "nightly", [Scope.PREDICT], 0.01)
    time.sleep(0.02)
    second, _ = create_key(database, "nightly", [Scope.PREDICT])
    with pytest.raises(KeyNameInUse, match=second.prefix):
        create_key(database, "nightly", [Scope.PREDICT])
    revoke_key(database, second.prefix)
    third, _ = create_key(database, "nightly", [Scope.PREDICT])
    assert len({first.prefix, second.prefix, third.prefix}) == 3


def test_the_last_admin_key_can_not_be_revoked(database):
    key, _ = create_key(database, "first", [Scope.ADMIN])
    with pytest.raises(LastAdminKey, match="create another key with the scope admin"):
        revoke_key(database, key.id)
    create_key(database, "second", [Scope.ADMIN])
    assert revoke_key(database, key.id).revoked_at is not None


@pytest.mark.parametrize(
    ("ends", "problem"),
    [
        ({}, None),
        ({"expires_at": 1e11}, None),
        ({"expires_at": 1.0}, "has expired"),
        ({"revoked_at": 1.0}, "was revoked"),
    ],
)
def test_keys_are_usable_until_they_expire_or_are_revoked(database, ends, problem):
    key, text = create_key(database, "a robot", [Scope.TRAIN])
    with database.writing() as session:
        for name, value in ends.items():
            setattr(session.get_one(Key, key.id), name, value)
    with database.reading() as session:
        usable = select(Key.id).where(is_usable(database.now(session)))
        assert session.scalars(usable).all() == [key.id] * (problem is None)
    if problem is None:
        assert Keyring(database).authenticate(text).scopes == Scope.TRAIN.implied
    else:
        with pytest.raises(Unauthenticated, match=problem):
            Keyring(database).authenticate(text)


def test_a_changed_preset_secret_takes_the_place_of_the_earlier_one(database):
    for text in (FIRST, FIRST, SECOND):
        preset_admin_key(database, text)
    with database.reading() as session:
        (key,) = list_keys(session)
    assert key.scopes == ["admin"]
    keyring = Keyring(database)
    assert keyring.authenticate(SECOND).scopes == list(Scope)
    with pytest.raises(Unauthenticated, match="no such key"):
        keyring.authenticate(FIRST)


def test_a_revoked_preset_key_does_not_come_back(database, caplog):
    preset_admin_key(database, FIRST)
    create_key(database, "another", [Scope.ADMIN])
    revoke_key(database, "ci")
    preset_admin_key(database, FIRST)
    assert "was revoked" in caplog.text
    with pytest.raises(Unauthenticated, match="was revoked"):
        Keyring(database).authenticate(FIRST)


def test_invalid_and_foreign_keys_are_not_preset(database):
    with pytest.raises(Unauthenticated, match=r"^TFBBB_ADMIN_KEY: .*Received: "):
        preset_admin_key(database, "ci.short")
    with database.writing() as session:
        add_key(database, session, FIRST, "mine", [Scope.PREDICT])
    with pytest.raises(Unauthenticated, match="the prefix of another key"):
        preset_admin_key(database, SECOND)


def test_services_that_start_at_once_add_the_key_once(postgresql):
    database = Database(new_database(postgresql))
    create_tables(database)
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda _: preset_admin_key(database, FIRST), range(8)))
    with database.reading() as session:
        assert len(list_keys(session)) == 1
    database.close()


def test_a_key_signs_in_and_out(client, browser):
    assert browser.get(URL).status_code == 401
    key = make(client, "train")
    response = browser.post(URL, json={"key": f" {key['key']} "})
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    sent = response.headers["set-cookie"].lower()
    assert "httponly" in sent
    assert "samesite=strict" in sent
    # The test speaks HTTP, over which a secure cookie would never be sent.
    assert "secure" not in sent
    made = response.json()
    assert (made["name"], made["scopes"]) == (
        key["name"],
        ["metrics", "predict", "train"],
    )
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


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"key": f"{ADMIN_KEY}0"}, 401, "no such key"),
        ({}, 400, "key"),
        ({"key": "x" * 5000}, 413, "4096 bytes"),
    ],
)
def test_wrong_keys_get_no_cookie(browser, body, status, message):
    response = browser.post(URL, json=body)
    assert message in refusal(response, status)
    assert "set-cookie" not in response.headers


def test_revoked_key_is_refused_and_signs_out(client, browser):
    key = make(client)
    assert browser.post(URL, json={"key": key["key"]}).json()["key_id"] == key["id"]
    assert client.delete(f"/v1/keys/{key['id']}").status_code == 200
    response = browser.get(URL)
    assert "was revoked" in refusal(response, 401)
    assert browser.post(URL, json={"key": key["key"]}).status_code == 401
    assert browser.delete(URL).status_code == 204
    assert "Received: no key" in browser.get(URL).json()["error"]


def test_the_cookie_is_signed_and_is_no_key(client, browser):
    key = make(client, "train")["key"]
    browser.post(URL, json={"key": key})
    token = cookie(browser)
    prefix, _, secret = key.partition(".")
    assert secret not in token
    assert browser.get("/v1/jobs").status_code == 200
    assert browser.get("/v1/jobs", headers=bearer(token)).status_code == 401
    browser.cookies.clear()
    name = f"tfbbb-session-{browser.base_url.port}"
    of_admin = token.replace(prefix, ADMIN_KEY.partition(".")[0])
    for forged in (key, f"{prefix}.{'0' * 43}", of_admin, f"{token}0", "nonsense"):
        answer = browser.get("/v1/jobs", headers={"Cookie": f"{name}={forged}"})
        assert "session has ended" in refusal(answer, 401)


def test_a_session_ends_with_its_key_and_after_a_week(database, monkeypatch):
    key, text = create_key(database, "a person", [Scope.TRAIN], 3600)
    # Another process of the service accepts the sessions of this one.
    keyring, other = Keyring(database), Keyring(database)
    token = keyring.start_session(text)
    ends = other.authenticate(token, of_session=True).expires_at
    assert ends.timestamp() == pytest.approx(key.expires_at, abs=1e-3)
    with monkeypatch.context() as patch:
        patch.setattr("service.api.keys.keyring._SESSION_SECONDS", -1)
        with pytest.raises(Unauthenticated, match="session has ended"):
            other.authenticate(token, of_session=True)
    with database.writing() as session:
        # As a changed TFBBB_ADMIN_KEY does.
        session.get_one(Key, key.id).secret_sha256 = "0" * 64
    with pytest.raises(Unauthenticated, match="session has ended"):
        other.authenticate(token, of_session=True)


@pytest.fixture
def ask():
    """Status of a request to a service of this machine, and what may ask for no key."""

    async def endpoint(scope, receive, send):
        await Response()(scope, receive, send)

    async def find(text, of_session=False):
        return ANYONE

    def ask(method, headers, path="/x", *, insecure=False):
        settings = Settings(insecure=insecure)
        service = SimpleNamespace(settings=settings, keyring=SimpleNamespace(find=find))

        async def app(scope, receive, send):
            scope["state"] = {"service": service, "request_id": "1", "prefix": ""}
            await Authentication(endpoint)(scope, receive, send)

        client = TestClient(app, base_url="http://127.0.0.1:8000")
        return client.request(method, path, headers=headers).status_code

    return ask


COOKIE = {"Cookie": "tfbbb-session-8000=token"}


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("POST", {"Sec-Fetch-Site": "same-site"}, 403),
        ("POST", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("POST", {"Origin": "null"}, 403),
        ("POST", {"Origin": "http://127.0.0.1:8000"}, 200),
        ("POST", {}, 200),
        ("GET", {"Sec-Fetch-Site": "same-site"}, 200),
    ],
)
def test_other_pages_can_use_a_key_in_a_header_but_not_the_cookie(
    ask, method, headers, status
):
    assert ask(method, headers | COOKIE) == status
    assert ask(method, headers | bearer(ADMIN_KEY)) == 200


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_other_pages_can_neither_sign_in_nor_out(ask, method):
    assert ask(method, OF_PAGE, URL) == 200
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
    ):
        assert ask(method, headers, URL) == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        # What any page that is open in a browser on this machine could send.
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        # A page whose name leads here once it is loaded is of the same origin.
        ({"Host": "evil.example", "Sec-Fetch-Site": "same-origin"}, 403),
        ({"Host": "localhost:8000", "Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
def test_without_keys_everybody_but_other_pages_is_answered(ask, headers, status):
    assert ask("POST", headers, insecure=True) == status
    assert ask("POST", {"Sec-Fetch-Site": "same-origin"}) == 401
