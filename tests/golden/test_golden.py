"""Files of the present schema version answer as they did when they were written."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfbbb
from tests.golden.write import answers_of
from tfbbb.export.manifest import SCHEMA_VERSION

ROOT = Path(__file__).parent
STORED = sorted(ROOT.glob("*/*.json"))


@pytest.mark.parametrize("path", STORED, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_golden_file_answers_as_it_did(path: Path) -> None:
    stored = json.loads(path.read_text())
    model = tfbbb.load(path.with_suffix(""))
    assert str(model.manifest.schema_version) == path.parent.name
    assert_close(answers_of(model, stored["rows"]), stored["answers"], path.stem)


def test_there_are_golden_files_of_the_present_schema_version() -> None:
    present = {path.stem for path in STORED if path.parent.name == str(SCHEMA_VERSION)}
    assert present == {"columns", "classes", "ensemble"}


def assert_close(found: Any, stored: Any, name: str) -> None:
    if isinstance(stored, dict):
        assert set(found) == set(stored)
        for key, values in stored.items():
            assert_close(found[key], values, f"{name}, {key}")
    else:
        # Single precision, summed in another order by another processor.
        np.testing.assert_allclose(found, stored, rtol=1e-5, atol=1e-6, err_msg=name)
