"""What every test stands on: the backend, quiet logs, fixed seeds."""

import ctypes
import gc
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

# Read when TensorFlow, Keras or Matplotlib is first imported, so set before any
# test or doctest is collected.
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["MPLBACKEND"] = "Agg"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# TensorFlow decides by the processor, and has convolutions of `channels_first` and
# dilated transposed ones with oneDNN only.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
# The arrays of tests are small, and two workers share the processors: threads that wait
# for one another take several times as long as one.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
    os.environ.setdefault(_threads, "1")

# Tracing allocates many objects that live on; the collector's default of a search after
# every 700 of them takes a twentieth of the time of the tests.
gc.set_threshold(20_000, 10, 10)


ROOT = Path(__file__).parents[1]
# What `make test` leaves to `make test-all`: the lab, what takes browsers, clusters,
# proxies, devices, killed processes or programs of their own, and long pages and
# examples. Paths of files and folders.
OUTER = (
    "tfbbb/lab/",
    "tfbbb/training/tuning.py",
    "tests/benchmarks/",
    "tests/cli/test_demo.py",
    "tests/deployment/",
    "tests/lab/",
    "tests/service/job_process/test_kills.py",
    "tests/service/job_process/test_ray_",
    "tests/service/replicas/",
    "tests/service/web/",
    "tests/test_distribution.py",
    "tests/test_packages.py",
    "docs/course/",
    "docs/gallery/",
    "docs/which.md",
    "docs/worse_than_dense.md",
)


# Files and folders whose functions run op by op: a trace takes longer than the few
# calls of a test. A test of many steps, or of what is compiled, has the fixture
# `compiled_functions`.
EAGER = (
    "tests/base/test_diverged_training.py",
    "tests/bayes/",
    "tests/benchmarks/test_adapters.py",
    "tests/cli/test_train.py",
    "tests/export/",
    "tests/inference/test_laplace.py",
    "tests/inference/test_network_function.py",
    "tests/inference/test_requirements.py",
    "tests/keras_programs/",
    "tests/layers/",
    "tests/model/",
    "tests/prediction/",
    "tests/scores/",
    "tests/sklearn/",
    "tests/test_copies.py",
    "tests/test_dtype_policies.py",
    "tests/test_places.py",
    "tests/test_with_posterior.py",
    "tests/training/test_more_rows.py",
    "tests/training/test_network.py",
    "tests/training/test_pipeline.py",
    "tests/training/test_recalibration.py",
    "tests/training/test_recipe.py",
    "tests/training/test_several_targets.py",
    "tests/training/test_serving_version.py",
    "tests/training/test_start_from.py",
    "tests/training/test_table.py",
    "tests/training/test_temperature_choice.py",
)

# Files among them whose matter is what was compiled, or with thousands of calls.
COMPILED = (
    "tests/bayes/divergences/test_through_tfp.py",
    "tests/bayes/posteriors/test_tfp_distribution.py",
    "tests/model/optimizers/test_ivon.py",
    "tests/prediction/test_constants.py",
    "tests/prediction/test_kept_draws.py",
)


def pytest_collection(session: pytest.Session) -> None:
    """Imports the packages whose examples are collected, as a program does.

    To collect examples, pytest would import the first module of a package once more
    after the package has, and there would be two classes of each name.
    """
    given = [
        Path(argument.partition("::")[0]).resolve() for argument in session.config.args
    ]
    for init in sorted((ROOT / "tfbbb").rglob("__init__.py")):
        if any(
            init.is_relative_to(path) or path.parent == init.parent for path in given
        ):
            parts = init.parent.relative_to(ROOT).parts
            importlib.import_module(".".join(parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "tensorflow" in sys.modules:
        from tensorflow.python.util import tf_stack

        # Each op that is traced keeps the stack of its making. Those of pytest are
        # deep, and take a tenth of the time of the tests.
        stack = tf_stack.extract_stack()
        tf_stack.extract_stack = lambda stacklevel=1: stack
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        _, _, case = item.nodeid.partition("[")
        if item.nodeid.startswith(OUTER) or case.startswith(OUTER):
            item.add_marker("outer")
        if item.get_closest_marker("few"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for found in cases.values():
        kept = min(found[0].get_closest_marker("few").args[0], len(found))
        places = {round(i * len(found) / kept) for i in range(kept)}
        for place, item in enumerate(found):
            if place not in places:
                item.add_marker("slow")
    # What is imported now lives on; no search for garbage need look at it. A service
    # that starts in this process would keep the garbage of the tests before it, too.
    gc.freeze()
    gc.freeze = lambda: None


@pytest.fixture(autouse=True, scope="module")
def no_compiled_functions() -> Iterator[None]:
    """Starts a module without the functions that TensorFlow compiled for others."""
    if "keras" not in sys.modules:
        yield
        return
    from tfbbb.base.private_apis import gradients_freed_with_graphs

    sys.modules["keras"].utils.set_random_seed(0)
    # Models of Keras alone leave the graphs of their steps to the process.
    with gradients_freed_with_graphs():
        yield
    gc.collect()
    # The C library of Linux keeps what was freed, for the next arrays.
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


@pytest.fixture(autouse=True, scope="module")
def functions_run_eagerly(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs the functions of the files in `EAGER` op by op."""
    name = request.node.nodeid
    is_eager = name.startswith(EAGER) and not name.startswith(COMPILED)
    if not is_eager or "tensorflow" not in sys.modules:
        yield
        return
    from tests.repeated_calls import running_functions
    from tfbbb.model.predictive_model import PredictiveModel

    # A file has compiled functions all the same.
    export = running_functions(eagerly=False)(PredictiveModel.export_predictive)
    with (
        running_functions(eagerly=True),
        mock.patch.object(PredictiveModel, "export_predictive", export),
    ):
        yield


@pytest.fixture
def compiled_functions() -> Iterator[None]:
    """Compiles functions in a test of a file of `EAGER`."""
    from tests.repeated_calls import running_functions

    with running_functions(eagerly=False):
        yield


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    # Tests that do without Keras need not wait for its import.
    if "keras" not in sys.modules:
        return
    from tensorflow.python.eager import context

    # Seeding TensorFlow also drops every compiled function, and tests that share a
    # model would compile it anew. Only random ops with a state of their own need that;
    # `tests/lab/compat` alone has such ops.
    with mock.patch.object(context.pywrap_tfe, "TFE_ContextClearCaches"):
        sys.modules["keras"].utils.set_random_seed(0)


@pytest.fixture(autouse=True)
def no_call_left_open() -> Iterator[None]:
    """Checks that a test leaves no call open, whose `training` later ones inherit."""
    yield
    if "keras" not in sys.modules:
        return
    from keras.src.backend.common import global_state

    left = global_state.get_global_attribute("current_call_ctx")
    global_state.set_global_attribute("current_call_ctx", None)
    assert left is None, f"The call of {left.entry_layer} is still open."


@pytest.fixture(autouse=True)
def no_open_figures() -> Iterator[None]:
    """Closes the figures that a test opened, which the programs of pages leave open."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
