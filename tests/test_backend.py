import importlib
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


def test_another_backend_is_refused_with_what_to_do():
    result = run("import tfbbb.layers", KERAS_BACKEND="jax")
    assert result.returncode != 0
    assert 'KERAS_BACKEND="tensorflow"' in result.stderr
    assert "Received: backend='jax'" in result.stderr


def test_another_backend_is_refused_where_keras_is_there_already():
    code = (
        "import keras\n"
        "keras.backend.backend = lambda: 'torch'\n"
        "try:\n"
        "    import tfbbb.layers\n"
        "except ImportError as error:\n"
        "    raise SystemExit(\"Received: backend='torch'\" not in str(error))\n"
        "raise SystemExit('no error')"
    )
    result = run(code)
    assert result.returncode == 0, result.stderr


def test_the_package_itself_imports_neither_keras_nor_tensorflow():
    code = "import sys, tfbbb; assert not {'keras', 'tensorflow'} & set(sys.modules)"
    assert run(code).returncode == 0


def test_every_public_name_is_found():
    code = "import tfbbb; [getattr(tfbbb, name) for name in dir(tfbbb)]"
    result = run(code)
    assert result.returncode == 0, result.stderr


PACKAGE = Path(tfbbb.__file__).parent
LAZY = ["compat", "data", "export", "prediction", "training"]


def test_every_subpackage_is_reached_without_an_import_of_its_own():
    subpackages = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    subpackages = [name for name in subpackages if name != "cli"]
    assert {"training", "metrics"} <= set(subpackages)
    code = f"import tfbbb\nfor name in {subpackages}: getattr(tfbbb, name).__name__"
    result = run(code)
    assert result.returncode == 0, result.stderr
    assert set(subpackages) <= set(dir(tfbbb))
    assert run("import tfbbb; tfbbb.compat.tfp_layers.DenseFlipout").returncode == 0


@pytest.mark.parametrize("name", ["tfbbb", *(f"tfbbb.{name}" for name in LAZY)])
def test_dir_lists_public_names_only(name):
    module = importlib.import_module(name)
    public = [name for name in dir(module) if not name.startswith("__")]
    assert set(module.__all__) <= set(public)
    assert not [name for name in public if name.startswith("_")]
    assert not {"Any", "TYPE_CHECKING", "import_module", "importlib", "sys"} & {*public}


def test_star_imports_every_public_name():
    code = (
        "from tfbbb import *\n"
        "import tfbbb\n"
        "assert set(tfbbb.__all__) <= set(globals())\n"
        "assert BayesianModel is tfbbb.BayesianModel"
    )
    result = run(code)
    assert result.returncode == 0, result.stderr


def test_unknown_names_are_refused():
    for name in LAZY:
        with pytest.raises(AttributeError, match="has no attribute 'other'"):
            _ = importlib.import_module(f"tfbbb.{name}").other
    with pytest.raises(AttributeError, match="module 'tfbbb' has no attribute 'other'"):
        _ = tfbbb.other


def test_saved_models_load_where_only_the_package_was_imported(tmp_path):
    path = str(tmp_path / "model.keras")
    save = (
        "import keras, tfbbb, pyarrow\n"
        "from tfbbb.data import Schema, preprocessing\n"
        "table = pyarrow.table({'kind': ['a', 'b'] * 6, 'y': range(12)})\n"
        "inputs, features = preprocessing(Schema.infer(table, 'y'))\n"
        "outputs = tfbbb.layers.DenseVariational(1)(features)\n"
        f"tfbbb.BayesianModel(inputs, outputs).save({path!r})"
    )
    assert run(save).returncode == 0
    load = f"import keras, tfbbb; keras.saving.load_model({path!r})"
    result = run(load)
    assert result.returncode == 0, result.stderr
