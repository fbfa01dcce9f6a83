import re

import pytest

from tests.benchmarks.programs import FOLDER, load
from tfbbb.cli.benchmark import find_programs

comparisons = load("comparisons")
make_results = load("make_results")


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    """The script imports each program that has records."""
    monkeypatch.syspath_prepend(FOLDER)


@pytest.fixture(scope="module")
def page():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        return make_results.results_page()


def test_the_page_is_made_of_the_records(page):
    committed = (FOLDER / "RESULTS.md").read_text("utf-8")
    assert committed == page, "run benchmarks/make_results.py"


def test_every_benchmark_with_records_has_a_section(page):
    names = re.findall(r"^## (\w+)$", page, re.MULTILINE)
    assert names == list(make_results.recorded_programs())
    assert "## What we lose on, and why" in page


@pytest.fixture(scope="module")
def compared():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        return make_results.compare_all()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda p: p.stem)
def test_every_program_with_records_is_compared(path, compared):
    assert compared[path.stem]


@pytest.mark.parametrize("name", find_programs())
def test_every_benchmark_can_compare(name):
    assert callable(load(name).compare)


def test_every_cause_is_of_a_comparison(compared):
    for benchmark, causes in make_results.read_causes().items():
        assert causes.keys() <= {found.name for found in compared[benchmark]}


def test_causes_of_what_is_worse_are_told(monkeypatch):
    causes = {"uci": {"RMSE, yacht": "Few rows.", "RMSE, wine": "Luck."}}
    monkeypatch.setattr(make_results, "read_causes", lambda: causes)
    found = [
        comparisons.Comparison("RMSE", on, ours, 1.0, "ngboost", False)
        for on, ours in {"yacht": 2.0, "wine": 0.5, "energy": 2.0}.items()
    ]
    assert make_results._causes({"uci": found}).splitlines()[3:] == [
        "- **uci, RMSE, yacht**: Few rows."
    ]
