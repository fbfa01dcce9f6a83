"""Modules of `tfbbb` do not import each other, not even lazily or for types alone."""

import ast
from pathlib import Path

import tfbbb

ROOT = Path(tfbbb.__file__).parent.parent

# Cycles that are still there, by their modules, each with what would break it.
KNOWN = {
    # A program holds a recalibration, which takes predictive distributions.
    frozenset(
        {
            "tfbbb.prediction",
            "tfbbb.prediction.computation",
            "tfbbb.prediction.posterior_predictive",
            "tfbbb.prediction.program",
            "tfbbb.prediction.propagated",
            "tfbbb.prediction.recalibrated_answers",
            "tfbbb.recalibration.recalibration",
        }
    ),
    # Engines choose among themselves.
    frozenset(
        {
            "tfbbb.prediction.engine",
            "tfbbb.prediction.local",
            "tfbbb.prediction.weight",
        }
    ),
    # The rules of propagation are looked up where they are used.
    frozenset(
        {
            "tfbbb.prediction.moments.propagation",
            "tfbbb.prediction.moments.registry",
        }
    ),
    # Methods of `BayesianModel` export and recalibrate it, and give its members.
    frozenset(
        {
            "tfbbb",
            "tfbbb.conversion",
            "tfbbb.export",
            "tfbbb.export.description",
            "tfbbb.export.exported_functions",
            "tfbbb.export.feature_tensors",
            "tfbbb.export.writer",
            "tfbbb.members",
            "tfbbb.model",
            "tfbbb.recalibration",
            "tfbbb.recalibration.fitting",
        }
    ),
}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree):
    """The names that are imported anywhere in a module, from most to least exact."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ([alias.name] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield [f"{node.module}.{alias.name}", node.module]


def imports(folder):
    """The modules below a folder, each with those of them that it imports."""
    paths = {module_name(path): path for path in (ROOT / folder).rglob("*.py")}
    graph = {}
    for name, path in paths.items():
        candidates = imported(ast.parse(path.read_text()))
        found = (next((c for c in exact if c in paths), name) for exact in candidates)
        graph[name] = set(found) - {name}
    return graph


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


def test_cycles_are_found():
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set()}
    assert cycles(graph) == {frozenset("abc")}


def test_no_import_cycles_beyond_the_known():
    found = cycles(imports("tfbbb"))
    new = [
        sorted(cycle) for cycle in found if not any(cycle <= known for known in KNOWN)
    ]
    assert not new, f"these modules import each other: {new}"


def test_declarations_import_no_tensorflow():
    graph = imports("tfbbb")
    allowed = ("tfbbb.families", "tfbbb.data.task", "tfbbb.support")
    for name in (name for name in graph if name.startswith("tfbbb.families")):
        assert all(other.startswith(allowed) for other in graph[name]), name
