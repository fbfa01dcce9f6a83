"""Where a library of an extra is missing, the error names the extra."""

import sys
import tomllib
from pathlib import Path
from unittest import mock

import keras
import pyarrow as pa
import pytest

import tfbbb
from docs.site import build
from service.shared.settings import Settings, SettingsError
from service.shared.store import StoreError, open_store
from tests.cli.commands import run_commands
from tests.cli.test_without_service import WITHOUT_EXTRA
from tests.tables.workbooks import write_xlsx
from tfbbb.base.extras import import_extra
from tfbbb.tables import TableError, read_table
from tfbbb.tables.writing import write_table

ROOT = Path(__file__).parents[2]
# Of people who work on the package: test tools, and programs that compare speeds. The
# library of these, `tf-keras`, comes with TensorFlow Probability.
FOR_DEVELOPERS = {"test", "benchmark"}
ERRORS = (ImportError, SettingsError, StoreError, TableError)


def network():
    inputs = keras.Input((1,))
    outputs = tfbbb.layers.DenseVariational(2, kl_weight=1.0)(inputs)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=tfbbb.likelihoods.Normal())


def read_workbook(directory):
    read_table(write_xlsx(directory / "a.xlsx", {"a": [["x"], [1]]}))


def write_workbook(directory):
    write_table(pa.table({"x": [1]}), directory / "a.xlsx")


def export_mlflow(directory):
    network().export_predictive(directory / "model", format="mlflow")


def export_onnx(directory):
    network().export_predictive(directory / "a.onnx", format="onnx")


def run_on_ray(directory):
    with mock.patch.dict(sys.modules):
        sys.modules.pop("service.job_process.ray_jobs", None)
        import_extra("ray", "service.job_process.ray_jobs")


def open_object_store(directory):
    open_store(Settings(store="s3://bucket/prefix", data_dir=directory))


def frame_of_predictions(directory):
    network().predictive([[1.0]], num_samples=2).to_pandas()


def list_keys(directory):
    """Runs the command in a process of its own, which has no library of the service."""
    raise ImportError(run_commands(["keys", "list"], first=WITHOUT_EXTRA).stderr)


def tune_table(directory):
    tfbbb.tune({"x": [1.0], "y": [1.0]}, {"target": "y"})


def build_documentation(directory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["build"])
        build.main()


CALLS = [
    ("docs", "furo", build_documentation),
    ("docs", "latex2mathml", build_documentation),
    ("docs", "myst_parser", build_documentation),
    ("docs", "sphinx", build_documentation),
    ("excel", "python_calamine", read_workbook),
    ("excel", "xlsxwriter", write_workbook),
    ("mlflow", "mlflow", export_mlflow),
    ("mlflow", "pandas", export_mlflow),
    ("onnx", "onnx", export_onnx),
    ("onnx", "onnxruntime", export_onnx),
    ("onnx", "requests", export_onnx),
    ("onnx", "tf2onnx", export_onnx),
    ("pandas", "pandas", frame_of_predictions),
    ("ray", "ray", run_on_ray),
    ("s3", "s3fs", open_object_store),
    ("service", "sqlalchemy", list_keys),
    ("tune", "optuna", tune_table),
]


def extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, list[str]] = project["optional-dependencies"]
    return found


def test_every_extra_of_users_has_a_call():
    assert {extra for extra, *_ in CALLS} == extras().keys() - FOR_DEVELOPERS


@pytest.mark.parametrize(
    "extra", sorted(extras().keys() - FOR_DEVELOPERS - {"service"})
)
def test_every_package_of_an_extra_is_hidden_once(extra):
    """Those of `service` have tests of their own in `tests/cli`."""
    packages = [line.split(">=")[0].replace("-", "_") for line in extras()[extra]]
    hidden = {library for name, library, _ in CALLS if name == extra}
    # The names of modules, where they are not those of packages.
    modules = {"mlflow_skinny": "mlflow", "ray[default]": "ray"}
    assert {modules.get(package, package) for package in packages} == hidden


@pytest.mark.parametrize(
    ("extra", "library", "call"),
    CALLS,
    ids=[f"{call.__name__}-{library}" for _, library, call in CALLS],
)
def test_a_missing_library_names_its_extra(extra, library, call, tmp_path, monkeypatch):
    loaded = [name for name in sys.modules if name.startswith(f"{library}.")]
    for name in (library, *loaded):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ERRORS, match=rf"pip install 'tfbbb\[{extra}\]'"):
        call(tmp_path)


def test_what_a_library_of_an_extra_needs_is_named_too(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import not_installed.part")
    monkeypatch.syspath_prepend(tmp_path)
    expected = r"This needs not_installed: `pip install 'tfbbb\[excel\]'`"
    with pytest.raises(ImportError, match=expected):
        import_extra("excel", "half_installed")
