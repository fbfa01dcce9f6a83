import json
import subprocess
import sys

import pytest

from tests.client.answering import Answer, answering
from tfbbb.client import Client, ClientError, ServiceError, UnreachableError

LOST = Answer(status=None)
JOB = {
    "id": "1" * 24,
    "name": "houses",
    "state": "queued",
    "progress": {},
    "error": None,
    "version": None,
}


def test_importing_the_client_imports_no_tensorflow():
    program = """
import sys
import tfbbb.client
print([n for n in ("tensorflow", "keras", "pandas", "fastapi") if n in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_environment_sets_address_and_key(monkeypatch):
    with answering(Answer(body={"models": []})) as service:
        monkeypatch.setenv("TFBBB_URL", f"{service.url}/")
        monkeypatch.setenv("TFBBB_KEY", "prefix.secret")
        with Client() as client:
            assert client.models() == []
        with Client(service.url, "other.secret") as client:
            client.models()
    first, second = service.requests
    assert first.path == "/v1/models"
    assert first.headers["authorization"] == "Bearer prefix.secret"
    assert second.headers["authorization"] == "Bearer other.secret"


def test_a_service_error_has_the_message_of_the_service():
    with answering(Answer(404, {"error": "There is no job 7."})) as service:
        with Client(service.url) as client, pytest.raises(ServiceError) as refusal:
            client.job("7")
        assert len(service.requests) == 1
    assert refusal.value.status == 404
    assert str(refusal.value) == refusal.value.message == "There is no job 7."


def test_a_missing_key_error_names_the_remedies():
    with (
        answering(Answer(401, {"error": "send `Authorization: Bearer`"})) as service,
        pytest.raises(ServiceError) as refusal,
    ):
        Client(service.url).models()
    assert refusal.value.status == 401
    assert "TFBBB_KEY" in refusal.value.message


@pytest.mark.parametrize("body", ["<html>", '{"detail": 1}'])
def test_an_error_of_a_proxy_gives_its_status(body):
    with (
        answering(Answer(413, body)) as service,
        Client(service.url) as client,
        pytest.raises(ServiceError, match=r"^413 (Content|Request Entity) Too Large$"),
    ):
        client.models()


def test_a_refused_connection_is_one_sentence():
    with answering(LOST) as service:
        pass
    with (
        Client(service.url) as client,
        pytest.raises(UnreachableError, match=r"^There is no service at http://127"),
    ):
        client.models()


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "http://[::1"])
def test_an_invalid_address_is_one_sentence(url):
    with pytest.raises(ClientError, match="Received: "):
        Client(url)


def test_an_idempotent_request_is_retried_after_a_lost_response():
    busy = Answer(503, {"error": "not ready"})
    with answering(LOST, busy, LOST, Answer(body={"models": []})) as service:
        with Client(service.url) as client:
            assert client.models() == []
        assert len(service.requests) == 4


def test_a_block_of_rows_waits_for_a_busy_service():
    busy = Answer(503, {"error": "busy"}, headers={"Retry-After": "0"})
    refused = Answer(400, {"error": "Row 1 does not fit."})
    with answering(*[busy] * 8, refused) as service:
        with (
            Client(service.url) as client,
            pytest.raises(ServiceError, match="Row 1 does not fit"),
        ):
            client.model("houses").predict({"area": [1.0]})
        # More often than a request that is not patient.
        assert len(service.requests) == 9


def test_a_request_is_sent_at_most_six_times():
    with answering(LOST) as service:
        with Client(service.url) as client, pytest.raises(UnreachableError):
            client.models()
        assert len(service.requests) == 6


def test_an_upload_is_not_retried(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text("area,price\n1,2\n")
    with answering(LOST) as service:
        with Client(service.url) as client, pytest.raises(UnreachableError):
            client.upload(path)
        assert len(service.requests) == 1


def test_a_retried_submission_has_the_same_idempotency_key():
    with answering(LOST, Answer(201, JOB)) as service, Client(service.url) as client:
        job = client.train("0" * 24, "price", name="houses", priority=3)
        assert job.state == "queued"
        client.train("0" * 24, "price", name="houses", priority=3)
    first, again, other = service.requests
    assert json.loads(first.body)["priority"] == 3
    keys = [r.headers["idempotency-key"] for r in (first, again, other)]
    assert keys[0] == keys[1] != keys[2]
