import time
from collections.abc import Callable

import httpx
import pytest
import sqlalchemy
from pydantic import SecretStr

from service.api.keys.credential import Scope
from service.app import create_app
from service.shared.database import Database
from service.shared.database.tables import Key
from service.shared.settings import Settings
from tests.service.serving import ADMIN_KEY, AS_ADMIN, listening, serving

KeyWith = Callable[..., dict[str, str]]


def key_of(database: Database, headers: dict[str, str]) -> Key:
    prefix = headers["Authorization"].removeprefix("Bearer ").partition(".")[0]
    with database.reading() as session:
        return session.scalars(sqlalchemy.select(Key).filter_by(prefix=prefix)).one()


def test_wrong_keys_are_refused(client: httpx.Client) -> None:
    # Known by now, so that the wrong ones meet the key that was kept.
    assert client.get("/docs").status_code == 200
    for header, message in (
        ("Bearer", "must be `prefix.secret`"),
        ("Bearer nonsense", "must be `prefix.secret`"),
        ("Basic dGVzdHM6eA==", "Bearer prefix.secret`. Received: the scheme 'Basic'"),
        (f"Bearer {ADMIN_KEY}0", "no such key"),
        ("Bearer other.0123456789abcdef0123456789abcdef", "no such key"),
    ):
        response = client.get("/docs", headers={"Authorization": header})
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert message in response.json()["error"]
        assert ADMIN_KEY not in response.text


def test_expired_keys_are_refused(client: httpx.Client, key_with: KeyWith) -> None:
    expired = key_with(Scope.ADMIN, expires_at=time.time() - 1)
    response = client.get("/docs", headers=expired)
    assert response.status_code == 401
    assert "has expired" in response.json()["error"]
    later = key_with(Scope.ADMIN, expires_at=time.time() + 60)
    assert client.get("/docs", headers=later).status_code == 200


def test_a_key_for_metrics_reads_them_and_nothing_else(
    client: httpx.Client, key_with: KeyWith
) -> None:
    headers = key_with(Scope.METRICS)
    assert client.get("/metrics", headers=headers).status_code == 200
    for path in ("/v1/models", "/v1/jobs", "/v1/audit"):
        assert client.get(path, headers=headers).status_code == 403


def test_the_last_use_is_written_once_a_minute(
    client: httpx.Client, key_with: KeyWith, database: Database
) -> None:
    headers = key_with(Scope.PREDICT)
    assert key_of(database, headers).last_used_at is None
    client.get("/docs", headers=headers)
    while (used := key_of(database, headers).last_used_at) is None:
        time.sleep(0.01)
    for _ in range(3):
        client.get("/docs", headers=headers)
    assert key_of(database, headers).last_used_at == used


def test_without_keys_anyone_may_do_everything(settings: Settings) -> None:
    insecure = settings.model_copy(update={"insecure": True})
    with serving(insecure) as client:
        del client.headers["Authorization"]
        assert client.get("/docs").status_code == 200
        assert client.get("/no/such").status_code == 404
        # What any page that is open in a browser on this machine could send.
        for headers in (
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Origin": "http://evil.example"},
        ):
            assert client.post("/docs", headers=headers).status_code == 403
        # A page whose name leads here once it is loaded is of the same origin.
        for host, status in (("evil.example", 403), ("localhost:8000", 200)):
            headers = {"Host": host, "Sec-Fetch-Site": "same-origin"}
            assert client.get("/docs", headers=headers).status_code == status


def test_a_browser_carries_the_key_in_a_cookie(client: httpx.Client) -> None:
    del client.headers["Authorization"]
    assert client.get("/docs").status_code == 401
    response = client.get(f"/?key={ADMIN_KEY}")
    assert response.status_code == 303
    assert response.headers["location"] == "./"
    assert ADMIN_KEY not in response.headers["set-cookie"]
    assert client.get("/docs").status_code == 200


def test_key_in_the_url_opens_only_the_page_and_only_if_it_is_right(
    client: httpx.Client,
) -> None:
    del client.headers["Authorization"]
    response = client.get(f"/?key={ADMIN_KEY}0")
    assert response.status_code == 401
    assert "set-cookie" not in response.headers
    assert response.headers["cache-control"] == "no-store"
    assert "main.js" in response.text
    assert client.get(f"/docs?key={ADMIN_KEY}").status_code == 401


def test_the_access_log_holds_no_key(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = settings.model_copy(update={"admin_key": SecretStr(ADMIN_KEY)})
    with listening(create_app(preset), log_level="info") as client:
        for name in ("key", "k%65y"):
            client.get(f"/?{name}={ADMIN_KEY}")
            client.get(f"/docs?{name}={ADMIN_KEY}")
    logged = capsys.readouterr()
    assert ADMIN_KEY.partition(".")[2] not in logged.out + logged.err


COOKIE_FROM: tuple[tuple[str, dict[str, str], int], ...] = (
    ("POST", {"Sec-Fetch-Site": "same-origin"}, 405),
    ("POST", {"Sec-Fetch-Site": "same-site"}, 403),
    ("POST", {"Sec-Fetch-Site": "cross-site"}, 403),
    ("POST", {"Origin": "null"}, 403),
    ("POST", {}, 403),
    ("GET", {"Sec-Fetch-Site": "none"}, 200),
    ("GET", {"Sec-Fetch-Site": "same-site"}, 403),
    ("GET", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "document"}, 200),
)


def test_other_pages_can_use_a_key_in_a_header_but_not_the_cookie(
    client: httpx.Client,
) -> None:
    headers = AS_ADMIN | {"Sec-Fetch-Site": "cross-site"}
    assert client.get("/docs", headers=headers).status_code == 200
    del client.headers["Authorization"]
    client.get(f"/?key={ADMIN_KEY}")
    for method, headers, status in COOKIE_FROM:
        response = client.request(method, "/docs", headers=headers)
        assert response.status_code == status, (method, headers)
