"""Compressed bodies and answers, and pages of other origins."""

import gzip
import json

import pyarrow as pa
import pytest

from service.shared.settings import Settings, SettingsError
from tests.service.serving import refusal, serving, visiting

PATH = "/v1/models/diabetes:predict"
ORIGIN = "https://app.example"
ROW = {"instances": [[1.0, 2.0, 3.0]]}


@pytest.fixture(scope="module")
def service(saved_models):
    settings = Settings(
        models=saved_models, max_body_bytes=100_000, cors_origins=ORIGIN
    )
    with serving(settings) as client:
        yield client


def compress(body, encoding):
    if encoding == "gzip":
        return gzip.compress(body)
    return bytes(pa.compress(body, codec="zstd", asbytes=True))


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_compressed_body_is_the_body(service, encoding):
    body = json.dumps(ROW).encode()
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
    found = service.post(PATH, content=compress(body, encoding), headers=headers)
    assert found.json() == service.post(PATH, json=ROW).json()
    assert found.status_code == 200
    # Of an endpoint whose body FastAPI reads.
    name = f"of-{encoding}"
    key = json.dumps({"name": name, "scopes": ["predict"]}).encode()
    made = service.post("/v1/keys", content=compress(key, encoding), headers=headers)
    assert made.json()["name"] == name


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_limits_count_what_comes_out(service, encoding):
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
    bomb = compress(b" " * 2**28, encoding)
    for path in (PATH, "/v1/keys"):
        found = service.post(path, content=bomb, headers=headers)
        assert found.status_code == 413, found.text
    assert (
        "100000 bytes (TFBBB_MAX_BODY_BYTES)"
        in (service.post(PATH, content=bomb[:90_000], headers=headers).json()["error"])
    )


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("body", [b"{}", b"cut"])
def test_other_bytes_get_a_sentence(service, encoding, body):
    if body == b"cut":
        body = compress(json.dumps(ROW).encode(), encoding)[:-6]
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
    found = service.post(PATH, content=body, headers=headers)
    assert "is not what its Content-Encoding says" in refusal(found, 400)


def test_unknown_encodings_are_refused(service):
    for path in (PATH, "/v1/keys", "/v1/datasets"):
        headers = {"Content-Encoding": "br"}
        found = service.post(path, content=b"{}", headers=headers)
        assert "gzip or zstd" in refusal(found, 415)


def test_large_answers_are_compressed_for_those_who_ask(service):
    many = {"instances": ROW["instances"] * 50}
    plain = service.post(PATH, json=many, headers={"Accept-Encoding": "identity"})
    small = service.post(PATH, json=many, headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert small.num_bytes_downloaded < len(plain.content) / 2
    assert small.content == plain.content
    one = service.post(PATH, json=ROW, headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in one.headers


def test_pages_of_named_origins_may_send_a_key(service):
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type",
    }
    with visiting(service) as page:
        for origin, status in ((ORIGIN, 200), ("https://evil.example", 400)):
            found = page.options(PATH, headers={"Origin": origin, **asked})
            assert found.status_code == status
            allowed = found.headers.get("access-control-allow-origin")
            assert allowed == (ORIGIN if origin == ORIGIN else None)
            assert "access-control-allow-credentials" not in found.headers
        # Errors have the header, too, so that the page can read them.
        wrong = {"Origin": ORIGIN, "Authorization": "Bearer wrong.key"}
        refused = page.post(PATH, json=ROW, headers=wrong)
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == ORIGIN
    answered = service.post(PATH, json=ROW, headers={"Origin": ORIGIN})
    assert answered.headers["access-control-allow-origin"] == ORIGIN
    exposed = answered.headers["access-control-expose-headers"]
    assert "X-Request-Id" in exposed
    assert "Retry-After" in exposed


def test_by_default_there_are_no_other_origins(client):
    found = client.get("/v1/models", headers={"Origin": ORIGIN})
    assert not [name for name in found.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "given", ["app.example", "https://app.example/page", "https:// a"]
)
def test_origins_are_checked(given):
    with pytest.raises(SettingsError, match="TFBBB_CORS_ORIGINS"):
        Settings.from_environment({"TFBBB_CORS_ORIGINS": given})
