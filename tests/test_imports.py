"""Imports go downwards, never in a circle; specs need no TensorFlow.

The processes of the service share `service.shared`, and nothing else.
"""

import ast
import functools
from pathlib import Path

import pytest

import tfbbb

ROOT = Path(tfbbb.__file__).parent.parent

# Three rings on common ground. A ring may import the rings that it names, and itself.
RINGS = {
    "ground": ({"base", "tables", "version"}, ()),
    "kit": (
        {"bayes", "layers", "prediction", "export", "scores", "model", "inference"},
        ("ground",),
    ),
    "tables": (
        {"judging", "training", "sklearn", "client", "cli", "tfbbb", "__main__"},
        ("ground", "kit"),
    ),
    "lab": ({"lab"}, ("ground", "kit", "tables")),
}
RING_OF = {folder: ring for ring, (folders, _) in RINGS.items() for folder in folders}
# The folders of `tfbbb`, from the top: none imports a folder to its left.
ORDER = (
    *("__main__", "cli", "tfbbb", "lab", "client", "sklearn", "training", "judging"),
    *("inference", "model", "scores", "export", "prediction", "layers", "bayes"),
    *("tables", "base", "version"),
)
# The folders that the service may import.
SERVICE = {"base", "tables", "prediction", "export", "judging", "training"}
# What the folders of the service may import of it, beside themselves.
PROCESSES = {
    "api": {"predicting", "shared"},
    "job_process": {"shared"},
    "predicting": {"shared"},
    "parent": {"shared"},
    # It answers by the functions of the models.
    "sandbox": {"predicting", "shared"},
    "shared": set(),
    # The public entries.
    "app": {"api"},
    "service": set(),
}
# Folders that import no TensorFlow, with their modules that do.
WITHOUT_TENSORFLOW = {
    # Modules that need Keras for the base of a class.
    "tfbbb.bayes": {"kl_schedules.schedule_callback"},
    "tfbbb.cli": set(),
    "tfbbb.client": set(),
    "tfbbb.export.numpy_engine": {"writer"},
    "tfbbb.export.reader": set(),
    "tfbbb.sklearn": set(),
    "tfbbb.tables": {
        # Layers and tensors of columns.
        *("calendar_features", "features", "number_features", "text_features"),
        "memory_rows",
    },
    "tfbbb.training.spec": set(),
}
TENSORFLOW = {"tensorflow", "keras", "tensorflow_probability"}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS, SERVICE_PATHS = (
    {module_name(path): path for path in (ROOT / package).rglob("*.py")}
    for package in ("tfbbb", "service")
)


def imported(nodes):
    """The names that nodes import, each from most to least exact."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ([alias.name] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"a relative import: {ast.unparse(node)}"
            for alias in node.names:
                yield [f"{node.module}.{alias.name}", node.module]


def run_at_import(tree):
    """The nodes of a module that run when it is imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from run_at_import(node)


@functools.cache
def imports(nodes=ast.walk, package="tfbbb"):
    """The modules of a package, each with the modules of it that it imports."""
    paths = PATHS if package == "tfbbb" else SERVICE_PATHS
    graph = {}
    for name, path in paths.items():
        candidates = imported(nodes(parsed(path)))
        found = (next((c for c in exact if c in paths), name) for exact in candidates)
        graph[name] = set(found) - {name}
    return graph


@functools.cache
def parsed(path):
    return ast.parse(path.read_text())


def with_packages(graph):
    """The same imports, with the packages that Python imports on the way.

    A package whose `__init__` runs already is not one of them.
    """
    return {
        name: {
            package
            for other in found
            for package in (other, *packages(other))
            if not f"{name}.".startswith(f"{package}.")
        }
        for name, found in graph.items()
    }


@functools.cache
def imports_on_the_way():
    """What runs when each module is imported, with the packages on the way."""
    return with_packages(imports(run_at_import))


@functools.cache
def libraries(name):
    """The libraries and packages that a module imports when it is imported."""
    nodes = run_at_import(parsed(PATHS[name]))
    return {exact[-1].split(".")[0] for exact in imported(nodes)}


def packages(name):
    """The packages that a module is in, but for `tfbbb`, which is always imported."""
    parts = name.split(".")
    return [".".join(parts[:i]) for i in range(2, len(parts))]


def reachable(graph, start):
    seen, waiting = set(), [start]
    while waiting:
        new = graph[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def cycles(graph):
    reached = {name: reachable(graph, name) for name in graph}
    return {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
        if name in reached[name]
    }


def part(name):
    return name.split(".")[1] if "." in name else name


def test_cycles_are_found():
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set()}
    assert cycles(graph) == {frozenset("abc")}


@pytest.mark.parametrize("package", ["tfbbb", "service"])
def test_modules_do_not_import_in_a_circle(package):
    """Not even where a function imports, or an import is for types alone."""
    found = [sorted(cycle) for cycle in cycles(imports(package=package))]
    assert not found, f"these modules import each other: {found}"


def test_packages_do_not_import_in_a_circle():
    found = [sorted(cycle) for cycle in cycles(imports_on_the_way())]
    assert not found, f"these modules import each other on the way: {found}"


def test_every_folder_is_in_a_ring():
    assert {part(name) for name in PATHS} == set(RING_OF) == set(ORDER)


def test_no_ring_imports_a_ring_around_it():
    crossing = [
        f"{name} imports {other}"
        for name, found in imports().items()
        for other in found
        if (outer := RING_OF[part(other)]) != (ring := RING_OF[part(name)])
        and outer not in RINGS[ring][1]
    ]
    assert not crossing, f"see RINGS in {Path(__file__).name}: {crossing}"


def test_no_folder_imports_a_folder_above():
    upwards = [
        f"{name} imports {other}"
        for name, found in imports().items()
        for other in found
        if ORDER.index(part(other)) < ORDER.index(part(name))
    ]
    assert not upwards, f"see ORDER in {Path(__file__).name}: {upwards}"


@pytest.mark.parametrize("folder", WITHOUT_TENSORFLOW)
def test_folder_imports_no_tensorflow(folder):
    graph = imports_on_the_way()
    with_tensorflow = {f"{folder}.{name}" for name in WITHOUT_TENSORFLOW[folder]}
    starts = {"tfbbb", *(n for n in PATHS if f"{n}.".startswith(f"{folder}."))}
    starts -= with_tensorflow
    for name in starts.union(*(reachable(graph, start) for start in starts)):
        assert not libraries(name) & TENSORFLOW, f"{folder} imports {name}"


def test_the_service_imports_exports_predictions_and_tables_alone():
    for path in SERVICE_PATHS.values():
        names = list(imported(ast.walk(parsed(path))))
        found = {part(e[0]) for e in names if e[0].startswith("tfbbb.")}
        found -= {"__version__", "version"}
        assert found <= SERVICE, f"{path} imports {found - SERVICE}"


def test_only_commands_import_the_service():
    for name, path in PATHS.items():
        found = {exact[-1] for exact in imported(ast.walk(parsed(path)))}
        if any(other.split(".")[0] == "service" for other in found):
            assert part(name) == "cli", name


def test_every_folder_of_the_service_has_a_rule():
    assert {part(name) for name in SERVICE_PATHS} == PROCESSES.keys()


def test_a_process_of_the_service_imports_no_other_process():
    crossing = [
        f"{name} imports {other}"
        for name, found in imports(package="service").items()
        for other in found - {"service"}
        if part(other) not in {part(name), *PROCESSES[part(name)]}
    ]
    assert not crossing, f"see PROCESSES in {Path(__file__).name}: {crossing}"
