import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tfbbb


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


PACKAGE = Path(tfbbb.__file__).parent
LAZY = ["export", "lab.compat", "prediction", "tables", "training"]
SUBPACKAGES = sorted(
    name
    for name in dir(tfbbb)
    if not name.startswith("__") and name not in tfbbb.__all__
)
# Run in this order, each in a process that has imported Keras and TensorFlow only.
PROGRAMS = {
    "another backend": """
import keras
keras.backend.backend = lambda: "torch"
try:
    import tfbbb.layers
except ImportError as error:
    assert 'KERAS_BACKEND="tensorflow"' in str(error)
    assert "Received: backend='torch'" in str(error)
else:
    raise AssertionError("no error")
""",
    "names": f"""
import tfbbb
tfbbb.lab.compat.tfp_layers.DenseFlipout
from tfbbb import *
assert set(tfbbb.__all__) <= set(globals())
assert BayesianModel is tfbbb.BayesianModel
for name in {SUBPACKAGES}:
    getattr(tfbbb, name).__name__
""",
    "save": """
import keras, tfbbb, pyarrow
from tfbbb.tables import Schema, preprocessing
table = pyarrow.table({"kind": ["a", "b"] * 6, "y": range(12)})
inputs, features = preprocessing(Schema.infer(table, "y"))
outputs = tfbbb.layers.DenseVariational(1)(features)
tfbbb.BayesianModel(inputs, outputs).save("model.keras")
network = keras.Sequential(
    [keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(1)]
)
tfbbb.adapters.add(network).save("adapted.keras")
""",
    "load": """
import keras, tfbbb
keras.saving.load_model("model.keras")
keras.saving.load_model("adapted.keras")
""",
}
RUN_EACH = """
import json, os, sys, traceback
import keras, tensorflow, tensorflow_probability
assert "tfbbb" not in sys.modules
for name, program in json.loads(sys.argv[1]).items():
    child = os.fork()
    if child == 0:
        try:
            exec(program, {})
        except BaseException:
            with open(name, "w") as file:
                traceback.print_exc(file=file)
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """Returns the tracebacks of the programs that failed, by name."""
    directory = tmp_path_factory.mktemp("programs")
    subprocess.run(
        [sys.executable, "-c", RUN_EACH, json.dumps(PROGRAMS)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        check=True,
    )
    return {
        path.name: path.read_text()
        for path in directory.iterdir()
        if path.name in PROGRAMS
    }


def test_another_backend_is_refused_with_what_to_do(errors):
    assert "another backend" not in errors, errors["another backend"]


def test_the_package_itself_imports_neither_keras_nor_tensorflow():
    code = "import sys, tfbbb; assert not {'keras', 'tensorflow'} & set(sys.modules)"
    assert run(code).returncode == 0


def test_every_public_name_is_reached_without_an_import_of_its_own(errors):
    assert {"lab", "metrics", "training"} <= set(SUBPACKAGES)
    assert "names" not in errors, errors["names"]


@pytest.mark.parametrize("name", ["tfbbb", *(f"tfbbb.{name}" for name in LAZY)])
def test_dir_lists_public_names_only(name):
    module = importlib.import_module(name)
    public = [name for name in dir(module) if not name.startswith("__")]
    assert set(module.__all__) <= set(public)
    assert not [name for name in public if name.startswith("_")]
    assert not {"Any", "TYPE_CHECKING", "import_module", "importlib", "sys"} & {*public}


def test_unknown_names_are_refused():
    for name in LAZY:
        with pytest.raises(AttributeError, match="has no attribute 'other'"):
            _ = importlib.import_module(f"tfbbb.{name}").other
    with pytest.raises(AttributeError, match="module 'tfbbb' has no attribute 'other'"):
        _ = tfbbb.other


def test_saved_models_load_where_only_the_package_was_imported(errors):
    for program in ("save", "load"):
        assert program not in errors, errors[program]
