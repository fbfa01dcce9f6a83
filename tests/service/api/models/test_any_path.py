"""Names, labels, versions and paths of any kind."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

BODY = {"instances": [[1, 2, 3]]}

hostile = st.sampled_from(
    "..|.|%2e%2e|..%2f..%2fetc%2fpasswd|%2F|%5c..%5c|%00|a%00|safe%2f1|.staging|-|%ff|"
    f"\N{FULLWIDTH FULL STOP}|٣|1e3|0|-1|1.0|{2**63}|{'9' * 5000}|latest|safe".split(
        "|"
    )
)
# What a client may send undecoded, and what stands for any text.
segments = hostile | st.text(max_size=20).map(lambda text: quote(text, safe=""))
paths = st.builds(
    "/v1/models/{}{}".format,
    segments | st.builds("{}/{}/{}".format, segments, st.just("versions"), segments),
    st.sampled_from(["", ":predict", "/metadata", "/labels"]),
) | st.builds(
    "/v1/models/safe/{}/{}{}".format,
    st.sampled_from(["versions", "labels"]),
    segments,
    st.sampled_from(["", ":predict", "/metadata"]),
)


@pytest.fixture
def safe(publish: Callable[..., None], models: Path) -> None:
    if not (models / "safe").exists():
        publish("safe", 1)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    path=paths,
    body=st.sampled_from([BODY, {"version": 1}, {"version": 2**63 - 1}]),
)
def test_no_path_makes_the_service_fail_or_leave_its_directory(
    client: httpx.Client,
    models: Path,
    safe: None,
    method: str,
    path: str,
    body: dict[str, object],
) -> None:
    beside = sorted(models.parent.iterdir())
    response = client.request(method, path, json=body)
    assert response.status_code < 500, (method, path, response.text)
    if response.status_code >= 400:
        assert response.json().keys() == {"error", "code", "field"}
    assert sorted(models.parent.iterdir()) == beside
    # The newest version is in use, whatever was asked.
    assert (models / "safe" / "1" / "saved_model.pb").exists()
