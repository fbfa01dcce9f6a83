from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import HTTPConnection

from service.api.keys.wrong_keys import WrongKeys
from service.shared.errors import Unauthenticated, WrongKeysExceeded
from service.shared.settings import Settings

WRONG = {"Authorization": "Bearer tests.wrong"}
ELSEWHERE = {"X-Forwarded-For": "203.0.113.9"}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def from_(host: str) -> HTTPConnection:
    return HTTPConnection({"type": "http", "client": (host, 1)})


def refuse(wrong_keys: WrongKeys, host: str, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(Unauthenticated), wrong_keys.counting(from_(host)):
            raise Unauthenticated("wrong")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def wrong_keys(tmp_path: Path, clock: Clock) -> WrongKeys:
    return WrongKeys(tmp_path / "wrong", 6, clock)


def is_refused(wrong_keys: WrongKeys, host: str, **options: Any) -> bool:
    try:
        with wrong_keys.counting(from_(host), **options):
            return False
    except WrongKeysExceeded:
        return True


def test_address_is_refused_until_its_count_has_fallen(
    wrong_keys: WrongKeys, clock: Clock
) -> None:
    refuse(wrong_keys, "192.0.2.1", 6)
    counting = wrong_keys.counting(from_("192.0.2.1"))
    with pytest.raises(WrongKeysExceeded) as caught, counting:
        pass
    assert caught.value.headers == {"Retry-After": "10"}
    clock.now += 9.9
    assert is_refused(wrong_keys, "192.0.2.1")
    clock.now += 0.2
    refuse(wrong_keys, "192.0.2.1")
    assert is_refused(wrong_keys, "192.0.2.1")
    clock.now += 60
    refuse(wrong_keys, "192.0.2.1", 6)


def test_other_addresses_and_known_keys_are_not_refused(wrong_keys: WrongKeys) -> None:
    refuse(wrong_keys, "192.0.2.1", 6)
    assert not is_refused(wrong_keys, "192.0.2.2")
    assert not is_refused(wrong_keys, "192.0.2.1", is_known=True)


def test_half_of_an_ipv6_address_counts(wrong_keys: WrongKeys) -> None:
    for number in range(6):
        refuse(wrong_keys, f"2001:db8:0:1::{number}")
    assert is_refused(wrong_keys, "2001:db8:0:1:ffff::1")
    assert not is_refused(wrong_keys, "2001:db8:0:2::1")
    refuse(wrong_keys, "::ffff:192.0.2.1", 6)
    assert is_refused(wrong_keys, "192.0.2.1")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"max_wrong_keys_per_minute": 3})


def test_wrong_keys_get_429_and_right_ones_from_elsewhere_do_not(
    client: httpx.Client, key_with: Callable[..., dict[str, str]]
) -> None:
    # From here, this key is known.
    assert client.get("/v1/keys").status_code == 200
    fresh = key_with("predict")
    statuses = [client.get("/v1/keys", headers=WRONG).status_code for _ in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    response = client.get("/v1/keys", headers=WRONG)
    assert response.json()["code"] == "wrong_keys_exceeded"
    assert 1 <= int(response.headers["Retry-After"]) <= 20
    # Nor does a form for keys help to guess.
    sign_in = client.post("/v1/session", json={"key": "tests.wrong"})
    assert sign_in.status_code == 429
    # Other addresses, and callers who were signed in, are not refused.
    assert client.get("/v1/keys").status_code == 200
    elsewhere = client.get("/v1/session", headers=fresh | ELSEWHERE)
    assert elsewhere.status_code == 200
    assert client.get("/v1/session", headers=WRONG | ELSEWHERE).status_code == 401


def test_requests_without_a_key_are_not_counted(client: httpx.Client) -> None:
    del client.headers["Authorization"]
    statuses = {client.get("/v1/keys").status_code for _ in range(6)}
    assert statuses == {401}
