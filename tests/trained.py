"""Trained tables and exported models, made once and kept under `build/trained`.

They are made anew when the code of `tfbbb`, a library, or a description changes.
"""

import fcntl
import hashlib
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from tfbbb.base.types import TableLike
from tfbbb.tables.given_table import as_source

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "trained"
_LIBRARIES = ("keras", "numpy", "pyarrow", "tensorflow", "tensorflow-probability")


def trained_table(table: TableLike, spec: Any) -> Any:
    """Trains a table, or reads the result of an earlier training."""
    from tests.repeated_calls import running_functions
    from tfbbb.training import JobSpec, train_table

    given = JobSpec.model_validate(spec)
    table = as_source(table)
    path = _place(table, given).with_suffix(".pickle")
    with _made_once(path) as missing:
        if missing:
            with running_functions(eagerly=False):
                trained = train_table(table, given)
            # The classes of the parts of a spec are generated: a pickle lacks them.
            parts = replace(trained, spec=None), trained.spec.model_dump(mode="json")
            partial = path.with_suffix(".part")
            partial.write_bytes(pickle.dumps(parts))
            partial.rename(path)
    found, fields = pickle.loads(path.read_bytes())
    return replace(found, spec=JobSpec.model_validate(fields))


def exported_table(table: TableLike, spec: Any, root: Path) -> tuple[Path, Any]:
    """Writes version 1 of a trained table below a directory."""
    from tfbbb.training import JobSpec

    table = as_source(table)
    trained = trained_table(table, spec)
    path = _place(table, JobSpec.model_validate(spec)).with_suffix(".saved_model")
    return _copy_of(path, trained.export_to, root / "1"), trained


def copy_of_export(
    description: str, export: Callable[[Path], object], directory: Path
) -> Path:
    """Copies an exported model to a directory; exports it if there is none yet.

    Args:
        description: Determines the model, beside the code of `tfbbb`.
        export: Writes the model to a directory that does not exist.
        directory: Where the copy goes; a directory there must be empty.
    """
    digest = hashlib.sha256(_code_hash() + description.encode()).hexdigest()
    return _copy_of(KEPT / f"{digest[:24]}.saved_model", export, directory)


def copy_of_exports(directory: Path) -> Path:
    """Copies all models of `tests.exported_models`; imports no TensorFlow here."""
    names = "exported_models.py", "exported_manifests.py"
    description = "".join((ROOT / "tests" / name).read_text() for name in names)

    def export(path: Path) -> None:
        command = [sys.executable, "-m", "tests.exported_models", str(path)]
        subprocess.run(command, check=True, cwd=ROOT)

    return copy_of_export(description, export, directory)


def _copy_of(path: Path, export: Callable[[Path], object], directory: Path) -> Path:
    with _made_once(path) as missing:
        if missing:
            partial = path.with_suffix(".part")
            shutil.rmtree(partial, ignore_errors=True)
            export(partial)
            partial.rename(path)
    return shutil.copytree(path, directory, dirs_exist_ok=True)


def _place(table: pa.Table, spec: Any) -> Path:
    digest = hashlib.sha256(_code_hash())
    digest.update(spec.model_dump_json().encode())
    digest.update(
        json.dumps([str(table.schema), table.to_pydict()], default=str).encode()
    )
    return KEPT / digest.hexdigest()[:24]


@cache
def _code_hash() -> bytes:
    digest = hashlib.sha256()
    for path in sorted((ROOT / "tfbbb").rglob("*.py")):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    for name in _LIBRARIES:
        digest.update(f"{name} {version(name)}".encode())
    return digest.digest()


@contextmanager
def _made_once(path: Path) -> Iterator[bool]:
    """Tells whether a path is missing; other workers wait until the block has ended."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield not path.exists()
