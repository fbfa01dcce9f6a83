"""Models that NumPy cannot compute, which a child process computes."""

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from service.predicting import loaded_model
from service.predicting.loaded_model import LoadedModel
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
    child = there.run(process)
    assert child != os.getpid()
    expected = here.run(predict)
    np.testing.assert_allclose(there.run(predict), expected, rtol=1e-4)
    os.kill(child, signal.SIGKILL)
    with pytest.raises(Unavailable, match="ended during the request"):
        there.run(predict)
    # A process that is started anew loads the model first.
    np.testing.assert_allclose(there.run(predict), expected, rtol=1e-4)
    assert there.run(process) != child
    there.unload()
    loaded_model.close()
