"""Calls of a function in processes of this machine or on a Ray cluster, by joblib."""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TypeVar

import joblib
from joblib.parallel import get_active_backend

from tfbbb.base.extras import import_extra
from tfbbb.base.numbers import positive_integer
from tfbbb.base.ray_connection import connect
from tfbbb.base.types import Config

Result = TypeVar("Result")


@contextmanager
def places(processes: int | None, ray_address: str | None = None) -> Iterator[None]:
    """Says where `call_each` runs its calls, while the block runs."""
    if processes is not None:
        positive_integer("processes", processes)
        if ray_address is not None:
            raise ValueError(
                "Work runs in processes of this machine or on a Ray cluster: give one "
                "of the two. "
                f"Received: processes={processes!r}, ray_address={ray_address!r}"
            )
        with joblib.parallel_config("loky", n_jobs=processes, inner_max_num_threads=1):
            yield
    elif ray_address is not None:
        ray, backend = import_extra("ray", "ray", "ray.util.joblib")
        connected = connect(ray, ray_address)
        try:
            backend.register_ray()
            with joblib.parallel_config("ray", n_jobs=-1):
                yield
        finally:
            if connected:
                ray.shutdown()
    else:
        yield


def call_each(
    function: Callable[..., Result], arguments: Sequence[Config]
) -> Generator[tuple[int, Result], None, None]:
    """Calls a function, several times at a time where `places` has several processes.

    These compute with one thread each: threads change sums in their last bits, so
    results do not depend on the number of processes. The first error ends all calls.
    """
    num_places = joblib.effective_n_jobs(None)
    call = _call if num_places == 1 else _call_with_one_thread
    calls = [
        joblib.delayed(call)(number, function, given)
        for number, given in enumerate(arguments)
    ]
    if get_active_backend()[0].supports_return_generator:
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        with closing(parallel(calls)) as results:
            yield from results
    else:
        with joblib.Parallel(batch_size=1) as parallel:
            for first in range(0, len(calls), num_places):
                yield from parallel(calls[first : first + num_places])


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
    number: int, function: Callable[..., Result], given: Config
) -> tuple[int, Result]:
    return number, function(**given)


def _call_with_one_thread(
    number: int, function: Callable[..., Result], given: Config
) -> tuple[int, Result]:
    compute_with_one_thread()
    return _call(number, function, given)
