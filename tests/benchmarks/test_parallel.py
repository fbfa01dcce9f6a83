"""Calls in this process, and in processes of this machine."""

import os

import pytest

from tests.benchmarks.programs import FOLDER, load

parallel = load("parallel")


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Other processes import the module, too."""
    monkeypatch.syspath_prepend(FOLDER)


def square(number):
    if number < 0:
        raise KeyError(f"no number {number}")
    return number**2, os.getpid(), os.environ.get("TF_NUM_INTRAOP_THREADS")


def calls(number):
    return [{"number": i} for i in range(number)]


@pytest.mark.parametrize("processes", [None, 1])
def test_one_process_is_this_one(processes):
    with parallel.places(processes):
        results = list(parallel.call_each(square, calls(3)))
    assert [(place, result[:2]) for place, result in results] == [
        (i, (i**2, os.getpid())) for i in range(3)
    ]


def test_several_processes_have_one_thread_each():
    with parallel.places(2):
        results = dict(parallel.call_each(square, calls(5)))
    assert [results[i][0] for i in range(5)] == [0, 1, 4, 9, 16]
    assert {threads for *_, threads in results.values()} == {"1"}
    assert os.getpid() not in {process for _, process, _ in results.values()}


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_ends_the_calls(processes):
    with parallel.places(processes), pytest.raises(KeyError, match="no number -1"):
        list(parallel.call_each(square, [*calls(3), {"number": -1}]))
