"""The `Dockerfile` copies files and tries modules that exist."""

import importlib.util
import re

import pytest

from tests.deployment.containers import DOCKERFILE, ROOT
from tfbbb.version import __version__


def stage(name):
    """Returns the instructions of a stage."""
    found = re.search(
        rf"^FROM \S+ AS {name}$(.*?)(?=^FROM |\Z)", DOCKERFILE, re.M | re.S
    )
    return found[1]


@pytest.mark.parametrize("name", ["package", "predict-package"])
def test_every_module_that_a_build_imports_exists(name):
    (imports,) = re.findall(r"-c 'import (.*?)'", stage(name), re.S)
    modules = re.findall(r"[\w.]+", imports)
    assert "service.api.worker" in modules
    for module in modules:
        assert importlib.util.find_spec(module) is not None, module


def test_every_copied_file_is_in_the_context():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = re.findall(r"^COPY (?!--)(\S+) \./$", DOCKERFILE, re.M)
    for path in set(copied) - {"."}:
        assert (ROOT / path).is_file()
        assert f"!{path.partition('/')[0]}" in ignored


@pytest.mark.parametrize(
    ("image", "package"), [("full", "package"), ("predict", "predict-package")]
)
def test_images_have_version_and_commit(image, package):
    labels = dict(
        re.findall(r'org\.opencontainers\.image\.(\w+)="(.*?)"', stage(image))
    )
    assert labels["version"] == __version__
    assert labels["revision"] == "${SOURCE_COMMIT}"
    for name in (image, package):
        # The build of the wheel reads the variable.
        assert 'ARG SOURCE_COMMIT=""' in stage(name)
