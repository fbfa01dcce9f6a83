"""Imports in `tfbbb` go downwards, never in a circle; specs need no TensorFlow."""

import ast
from pathlib import Path

import pytest

import tfbbb

ROOT = Path(tfbbb.__file__).parent.parent

# The parts of `tfbbb`, from the top. A part may import the parts of its own line and of
# the lines below, but not of a line above. No single module imports in a circle, not
# even the modules of two parts in one line.
LAYERS = """
__main__
cli
tfbbb client
sklearn tuning
training plots explain
evaluation
callbacks
evidence
distributed
inference
bandits compression conversion compat
model model_average predictive_model class_weights
acquisition export metrics members finite_inputs
prediction recalibration
likelihood_model losses
layers
estimators
divergences
variational_weight
likelihoods priors
posteriors kl_schedules optimizers
families layer_state probability_outputs clones
training_rows dataset_rows
call_context data batch_layout executor noise private_apis strategy support
place_weights target_shape validation_errors
abbreviation backend checked_numbers disk_faults diverged_training first_callbacks
drift drift_reference elementwise_activations exact_numbers extras flushing
inference_result
known_fields model_name private_tensorflow ray_connection shown_number snake_case
stacking tensorflow_startup types version
"""
RANKS = {
    part: rank
    for rank, line in enumerate(reversed(LAYERS.strip().splitlines()))
    for part in line.split()
}
# Folders that import no TensorFlow, with their modules that do.
WITHOUT_TENSORFLOW = {
    "tfbbb.cli": {"prediction_table"},
    "tfbbb.client": set(),
    "tfbbb.data": {
        # Layers and tensors of columns.
        *("calendar_features", "column_input", "features", "hashed_text"),
        *("memory_rows", "one_hot"),
        *("once_per_row", "piecewise_linear_encoding", "row_layout", "standardize"),
        "stored_rows",
    },
    "tfbbb.families": set(),
    "tfbbb.sklearn": set(),
    "tfbbb.training.spec": set(),
}
TENSORFLOW = {"tensorflow", "keras", "tensorflow_probability"}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {module_name(path): path for path in (ROOT / "tfbbb").rglob("*.py")}


def imported(nodes):
    """The names that nodes import, each from most to least exact."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ([alias.name] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
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


def imports(nodes=ast.walk):
    """The modules of `tfbbb`, each with the modules of `tfbbb` that it imports."""
    graph = {}
    for name, path in PATHS.items():
        candidates = imported(nodes(ast.parse(path.read_text())))
        found = (next((c for c in exact if c in PATHS), name) for exact in candidates)
        graph[name] = set(found) - {name}
    return graph


def with_packages(graph):
    """The same imports, with the packages that Python imports on the way.

    A package whose `__init__` runs already is none of them.
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


def test_modules_do_not_import_in_a_circle():
    """Not even where a function imports, or an import is for types alone."""
    found = [sorted(cycle) for cycle in cycles(imports())]
    assert not found, f"these modules import each other: {found}"


def test_packages_do_not_import_in_a_circle():
    found = [sorted(cycle) for cycle in cycles(with_packages(imports(run_at_import)))]
    assert not found, f"these modules import each other on the way: {found}"


def test_layers_name_every_part():
    assert {part(name) for name in PATHS} == set(RANKS)


def test_parts_import_no_part_above():
    upwards = [
        f"{name} imports {other}"
        for name, found in imports().items()
        for other in found
        if RANKS[part(other)] > RANKS[part(name)]
    ]
    assert not upwards, f"see LAYERS in {Path(__file__).name}: {upwards}"


@pytest.mark.parametrize("folder", WITHOUT_TENSORFLOW)
def test_folder_imports_no_tensorflow(folder):
    graph = with_packages(imports(run_at_import))
    with_tensorflow = {f"{folder}.{name}" for name in WITHOUT_TENSORFLOW[folder]}
    starts = {"tfbbb", *(n for n in PATHS if f"{n}.".startswith(f"{folder}."))}
    starts -= with_tensorflow
    for name in starts.union(*(reachable(graph, start) for start in starts)):
        nodes = run_at_import(ast.parse(PATHS[name].read_text()))
        found = {exact[-1].split(".")[0] for exact in imported(nodes)}
        assert not found & TENSORFLOW, f"{folder} imports {name}"


def test_declarations_import_nothing_else():
    allowed = ("tfbbb.families", "tfbbb.data.task", "tfbbb.support")
    for name, found in imports().items():
        if name.startswith("tfbbb.families"):
            assert all(other.startswith(allowed) for other in found), name


def test_only_commands_import_the_service():
    for name, path in PATHS.items():
        found = {exact[-1] for exact in imported(ast.walk(ast.parse(path.read_text())))}
        if any(other.split(".")[0] == "service" for other in found):
            assert part(name) == "cli", name
