import pytest

from tests.benchmarks.programs import load, run_smoke

capacity = load("capacity")


@pytest.mark.slow
def test_smoke_run_measures_every_figure(tmp_path):
    table = capacity.write_table(tmp_path / "rows.csv", 200)
    model = tmp_path / "model"
    capacity.run("train", table, "--target=y", "--effort=quick", "--output", model)
    output = tmp_path / "capacity.json"
    measured = run_smoke("capacity", tmp_path, output, "--model", str(model))
    assert len(capacity.report(measured).splitlines()) == len(measured.records) == 4
