"""Calls of a function in processes of this machine, by joblib."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any, TypeVar

import joblib

Result = TypeVar("Result")


def places(processes: int | None) -> AbstractContextManager[object]:
    """Says where `call_each` runs its calls, while the block runs."""
    if processes is None:
        return nullcontext()
    return joblib.parallel_config("loky", n_jobs=processes, inner_max_num_threads=1)


def call_each(
    function: Callable[..., Result], arguments: Sequence[Mapping[str, Any]]
) -> Generator[tuple[int, Result], None, None]:
    """Calls a function, several times at a time where `places` has several processes.

    These compute with one thread each: threads change sums in their last bits, so
    results do not depend on the number of processes. The first error ends all calls.
    """
    call = _call if joblib.effective_n_jobs(None) == 1 else _call_with_one_thread
    calls = [
        joblib.delayed(call)(number, function, given)
        for number, given in enumerate(arguments)
    ]
    parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
    with closing(parallel(calls)) as results:
        yield from results


def compute_with_one_thread() -> None:
    """Makes this process, and those that it starts, compute with one thread.

    TensorFlow, OpenMP and OpenBLAS read the variables when they are imported.
    """
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "TF_NUM_INTEROP_THREADS",
        "TF_NUM_INTRAOP_THREADS",
    ):
        os.environ[name] = "1"


def _call(
    number: int, function: Callable[..., Result], given: Mapping[str, Any]
) -> tuple[int, Result]:
    return number, function(**given)


def _call_with_one_thread(
    number: int, function: Callable[..., Result], given: Mapping[str, Any]
) -> tuple[int, Result]:
    compute_with_one_thread()
    return _call(number, function, given)
