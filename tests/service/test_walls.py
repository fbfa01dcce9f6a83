"""The processes of the service share `service.shared`, and nothing else."""

import ast
import graphlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): (
        path
    )
    for path in (ROOT / "service").rglob("*.py")
}
# What the modules of a folder may import of `service`, beside their own folder.
ALLOWED = {
    "service.api": {"service.predicting", "service.shared"},
    "service.job_process": {"service.shared"},
    "service.predicting": {"service.shared"},
    "service.parent": {"service.shared"},
    # It answers by the functions of the models.
    "service.sandbox": {"service.predicting", "service.shared"},
    "service.shared": set(),
    # The public entries.
    "service.app": {"service.api"},
}


def imports(name):
    """The modules of ours that a module imports, lazily or for types only too."""
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import"
            # `from package import module` or `from module import name`.
            found = [
                full if (full := f"{node.module}.{alias.name}") in MODULES else module
                for alias in node.names
                if (module := node.module) is not None
            ]
        else:
            continue
        yield from (module for module in found if module in MODULES)


def folder(module):
    return ".".join(module.split(".")[:2])


def test_every_folder_of_the_service_has_a_rule():
    assert {*map(folder, MODULES)} == {"service", *ALLOWED}


@pytest.mark.parametrize("process", ALLOWED)
def test_a_process_imports_no_other_process(process):
    crossings = {
        f"{module} imports {imported}"
        for module in MODULES
        if folder(module) == process
        for imported in imports(module)
        if folder(imported) not in {"service", process, *ALLOWED[process]}
    }
    assert not crossings


def test_modules_of_the_service_import_each_other_in_one_direction():
    graph = {module: {*imports(module)} - {"service"} for module in MODULES}
    graphlib.TopologicalSorter(graph).prepare()
