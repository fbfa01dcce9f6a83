import json
import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.benchmarks.programs import load

records = load("records")
KEY = {"set": "a", "method": "b", "split": 0}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.json"


def test_a_measurement_is_read_instead_of_repeated(path, capsys):
    first = records.RecordFile(path).measure(KEY, lambda: {"rmse": 1.5})
    again = records.RecordFile(path).measure(KEY, pytest.fail)
    assert first == again
    assert first["rmse"] == 1.5
    assert first["seconds"] >= 0.0
    run = records.RecordFile(path).runs[first["run_index"]]
    assert run["python"]
    assert f"device: CPU, {run['device']['name']}\n" in capsys.readouterr().out


def test_other_settings_replace_a_record(path):
    file = records.RecordFile(path)
    file.measure(KEY, lambda: {"rmse": 1.0}, settings={"epochs": 1})
    file.measure({**KEY, "split": 1}, lambda: {"rmse": 2.0}, settings={"epochs": 1})
    file.measure(KEY, lambda: {"rmse": 3.0}, settings={"epochs": 2})
    assert [record["rmse"] for record in file.records] == [2.0, 3.0]


def test_a_skipped_measurement_is_tried_again_until_it_has_a_record(path):
    def skip():
        raise records.SkippedError("no such package")

    file = records.RecordFile(path)
    assert file.measure(KEY, skip) is None
    assert file.measure(KEY, skip) is None
    assert file.skipped == [{**KEY, "reason": "no such package"}]
    file.skip({"method": "b"}, "cannot be installed")
    file.measure({**KEY, "method": "c"}, lambda: {"rmse": 1.0})
    assert len(file.skipped) == 2
    file.measure(KEY, lambda: {"rmse": 1.0})
    assert file.skipped == []


def test_a_run_names_the_code(tmp_path, monkeypatch):
    def digest(text):
        (tmp_path / "module.py").write_text(text)
        return records.describe_run()["source"]

    monkeypatch.setattr(records.tfbbb, "__file__", str(tmp_path / "__init__.py"))
    assert digest("x = 1") == digest("x = 1") != digest("x = 2")


def test_the_file_is_json_even_for_infinite_figures(path):
    file = records.RecordFile(path)
    file.measure(KEY, lambda: {"log_likelihood": -math.inf, "curve": [1.0, math.nan]})

    def refuse(constant):
        raise AssertionError(constant)

    (record,) = json.loads(path.read_text(), parse_constant=refuse)["records"]
    assert record["log_likelihood"] is None
    assert record["curve"] == [1.0, None]


def test_writers_lose_no_record_of_each_other(path):
    """A lock holds between threads as between processes: each opens the folder."""

    def write(name):
        for split in range(20):
            key = {"method": name, "split": split}
            records.RecordFile(path).measure(key, dict)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, "ab"))
    assert len(records.RecordFile(path).records) == 40
    assert [file.name for file in path.parent.iterdir()] == ["some.json"]
