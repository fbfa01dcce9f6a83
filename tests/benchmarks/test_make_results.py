import re

import pytest

from tests.benchmarks.programs import FOLDER, load

make_results = load("make_results")
program = load("program")


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


@pytest.fixture
def causes(tmp_path, monkeypatch):
    (tmp_path / "causes.toml").write_text('[uci]\n"yacht RMSE" = "Few rows."\n')
    monkeypatch.setattr(make_results, "FOLDER", tmp_path)


@pytest.mark.parametrize(
    ("name", "cause"),
    [("yacht RMSE", "Few rows."), ("yacht log-likelihood", "No cause is known.")],
)
def test_what_is_lost_is_listed_with_its_cause(causes, name, cause):
    found = program.Comparison(name, 1.25, 0.5, "ngboost", larger_is_better=False)
    line = make_results._lost_line("uci", found)
    assert line == f"- **uci, {name}**: 1.25, ngboost 0.5. {cause}"


def test_every_cause_is_of_a_comparison():
    programs = make_results.recorded_programs()
    for benchmark, causes in make_results.read_causes().items():
        compare = load(benchmark).compare
        names = {found.name for found in compare(programs[benchmark])}
        assert causes.keys() <= names
