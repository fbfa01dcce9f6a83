from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.service.serving import ask, wait_until_ready
from tfbbb.version import __version__, commit


def figures(client: httpx.Client) -> dict[tuple[str, frozenset[str]], float]:
    response = client.get("/metrics")
    assert response.status_code == 200
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def test_requests_are_counted_by_route_and_status(client: httpx.Client) -> None:
    before = figures(client)
    client.get("/v1/models/no%2Fsuch")
    client.get("/v1/models/diabetes/versions/1")
    client.get("/v1/models/diabetes/versions/999")
    client.get("/v1/models/nosuch/versions/1")
    client.get("/no/such")
    client.get("/v1/models", headers={"Authorization": "Bearer x"})
    client.request("PROPFIND", "/no/such")
    after = figures(client)

    def counted(*labels: str) -> float:
        key = "tfbbb_http_requests_total", frozenset(labels)
        return after.get(key, 0) - before.get(key, 0)

    version = "/v1/models/{name}/versions/{version}"
    assert counted("GET", version, "diabetes", "200") == 1
    assert counted("GET", version, "diabetes", "404") == 1
    assert counted("GET", version, "other", "404") == 1
    assert counted("GET", "none", "", "404") == 2
    assert counted("GET", "none", "", "401") == 1
    assert counted("other", "none", "", "404") == 1
    key = frozenset(("GET", version, "diabetes"))
    assert after["tfbbb_http_request_duration_seconds_count", key] >= 2


def test_models_say_how_sure_they_were(client: httpx.Client) -> None:
    wait_until_ready(client)
    labels = frozenset(["diabetes", "2"])
    key = "tfbbb_predictive_standard_deviation_count", labels
    before = figures(client).get(key, 0)
    rows = '{"instances": [[1, 2, 3], [4, 5, 6]]}'
    assert ask(client, "diabetes", rows).status_code == 200
    after = figures(client)
    assert after[key] == before + 2
    assert after["tfbbb_model_versions", frozenset(["diabetes", "AVAILABLE"])] >= 1


def test_version_and_commit_of_the_service_are_labels(client: httpx.Client) -> None:
    labels = frozenset([__version__, commit()])
    assert figures(client)["tfbbb_build_info", labels] == 1


def test_disk_of_what_is_stored_is_counted(
    client: httpx.Client, saved_models: Path
) -> None:
    found = figures(client)
    files = [path for path in saved_models.rglob("*") if path.is_file()]
    versions = found["tfbbb_disk_bytes", frozenset(["versions"])]
    assert versions == sum(path.stat().st_size for path in files) > 0
    assert found["tfbbb_disk_bytes", frozenset(["database"])] > 0
    for kind in ("datasets", "jobs"):
        assert found["tfbbb_disk_bytes", frozenset([kind])] >= 0
    for directory in ("data", "models"):
        assert found["tfbbb_disk_free_bytes", frozenset([directory])] > 0


def test_queues_are_told(client: httpx.Client) -> None:
    found = figures(client)
    assert found["tfbbb_jobs", frozenset(["queued"])] == 0
    assert found["tfbbb_waiting_predictions", frozenset()] == 0
