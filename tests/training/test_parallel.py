"""Calls in this process, in processes of this machine, and on a Ray cluster."""

import importlib.util
import os

import joblib
import pytest

from tfbbb.training.parallel import call_each, places


def square(number):
    if number < 0:
        raise KeyError(f"no number {number}")
    return number**2, os.getpid(), os.environ.get("TF_NUM_INTRAOP_THREADS")


def calls(number):
    return [{"number": i} for i in range(number)]


@pytest.mark.parametrize("processes", [None, 1])
def test_one_process_is_this_one(processes):
    with places(processes):
        results = list(call_each(square, calls(3)))
    assert [(place, result[:2]) for place, result in results] == [
        (i, (i**2, os.getpid())) for i in range(3)
    ]


def test_several_processes_have_one_thread_each():
    with places(2):
        results = dict(call_each(square, calls(5)))
    assert [results[i][0] for i in range(5)] == [0, 1, 4, 9, 16]
    assert {threads for *_, threads in results.values()} == {"1"}
    assert os.getpid() not in {process for _, process, _ in results.values()}


def test_a_context_of_joblib_counts():
    with joblib.parallel_config(n_jobs=2), places(None):
        ((_, (_, process, _)),) = call_each(square, calls(1))
    assert process != os.getpid()


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_ends_the_calls(processes):
    with places(processes), pytest.raises(KeyError, match="no number -1"):
        list(call_each(square, [*calls(3), {"number": -1}]))


@pytest.mark.slow
def test_a_ray_cluster_computes():
    if importlib.util.find_spec("ray") is None:
        reason = "Ray is not installed: `pip install 'tfbbb[ray]'`."
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with places(None, "auto"):
            results = list(call_each(square, calls(5)))
            with pytest.raises(KeyError, match="no number -1"):
                list(call_each(square, [{"number": -1}]))
        assert ray.is_initialized()
    finally:
        ray.shutdown()
    assert [(place, result[0]) for place, result in results] == [
        (i, i**2) for i in range(5)
    ]
    assert {threads for _, (*_, threads) in results} == {"1"}
    assert len({process for _, (_, process, _) in results} - {os.getpid()}) == 2


def test_an_address_without_a_cluster_is_refused():
    pytest.importorskip("ray")
    with (
        pytest.raises(ConnectionError, match=r"ray_address='127\.0\.0\.1:1'"),
        places(None, "127.0.0.1:1"),
    ):
        pass


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), r"`processes` must be a positive integer\. Received"),
        ((2, "auto"), r"Received: processes=2, ray_address='auto'"),
    ],
)
def test_other_places_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message), places(*arguments):
        pass
