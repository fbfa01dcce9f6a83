from tests.benchmarks.programs import load, run_smoke

serving = load("serving")


def test_smoke_run_loses_no_request(tmp_path):
    measured = run_smoke("serving", tmp_path, tmp_path / "serving.json")
    services = {record["service"] for record in measured.records}
    assert services == set(serving.SERVICES)
    for record in measured.select(load="1 connections"):
        assert record["answered"] == sum(record["statuses"].values()) > 0
    assert not any(record["lost"] for record in measured.records)
    assert "Overload at 3 × capacity" in serving.report(measured)
