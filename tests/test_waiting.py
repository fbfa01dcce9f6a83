"""Clocks of tests are clocks of single modules."""

import re
import time

from tests import waiting
from tests.documents import ROOT
from tests.waiting import set_clock

# A service of the session has threads that outlive a test. One that meanwhile waits
# until a time of a faster clock never wakes.
_CLOCK_OF_ALL_THREADS = re.compile(
    r"""setattr\(\s*(?:"[\w.]*\btime\.|[\w.]*\btime, ")(?:monotonic|sleep)"""
)


def test_a_clock_of_one_module_leaves_the_others_theirs(monkeypatch):
    set_clock(monkeypatch, waiting, monotonic=lambda: -1.0)
    assert waiting.time.monotonic() == -1.0
    assert time.monotonic() > 0.0


def test_no_test_sets_the_clock_of_all_threads():
    for line in (
        'monkeypatch.setattr(module.time, "monotonic", lambda: 1.0)',
        'monkeypatch.setattr("service.module.time.monotonic", lambda: 1.0)',
    ):
        assert _CLOCK_OF_ALL_THREADS.search(line)
    found = [
        path.relative_to(ROOT)
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.name != "test_waiting.py"
        and _CLOCK_OF_ALL_THREADS.search(path.read_text())
    ]
    assert found == []
