"""Models that NumPy cannot compute, which a child process computes."""

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from service.predicting import loaded_model
from service.predicting.loaded_model import ChildProcess, LoadedModel
from service.shared.errors import Unavailable
from tfbbb.export.manifest import MANIFEST_PATH, Manifest, NumpyInfo

ROWS = [[1.0, 2.0, 3.0]]


def predict(model):
    return model.predict(ROWS, 20, 0)["mean"]


def process(model):
    return os.getpid()


def test_a_child_process_computes_with_tensorflow(saved_models, tmp_path):
    path = Path(shutil.copytree(saved_models / "diabetes" / "2", tmp_path / "2"))
    here = LoadedModel(path)
    needing = NumpyInfo(missing="NumPy lacks an operation.")
    manifest = replace(Manifest.read(path), numpy=needing)
    (path / MANIFEST_PATH).write_text(manifest.to_json())
    there = LoadedModel(path)
    assert here.run(process) == os.getpid()
    assert there.run(process) != os.getpid()
    expected = here.run(predict)
    np.testing.assert_allclose(there.run(predict), expected, rtol=1e-4)
    loaded_model.close()
    # A process that is started anew, as this one, loads the model first.
    found = loaded_model._run_there(path, predict)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    loaded_model._unload_there(path)


def test_a_child_process_that_ends_fails_one_call_and_is_started_anew():
    child = ChildProcess("The child")
    first = child.run(os.getpid)
    os.kill(first, signal.SIGKILL)
    with pytest.raises(Unavailable, match="The child ended during the request"):
        child.run(os.getpid)
    assert child.run(os.getpid) != first
    child.close()
