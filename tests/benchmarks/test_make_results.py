import re

import pytest

from tests.benchmarks.programs import FOLDER, load

make_results = load("make_results")


@pytest.fixture(scope="module")
def page():
    with pytest.MonkeyPatch.context() as patch:
        # The script imports each program that has records.
        patch.syspath_prepend(FOLDER)
        return make_results.results_page()


def test_the_page_is_made_of_the_records(page):
    committed = (FOLDER / "RESULTS.md").read_text("utf-8")
    assert committed == page, "run benchmarks/make_results.py"


def test_every_benchmark_with_records_has_a_section(page):
    names = re.findall(r"^## (\w+)$", page, re.MULTILINE)
    assert names == list(make_results.recorded_programs())
