import os
import subprocess
import sys


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
