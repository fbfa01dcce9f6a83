"""NumPy and TensorFlow give the same answers about any table."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tfbbb
from tests.training.test_network import OF_TARGET, targets_of
from tfbbb.export.inputs import to_tensors
from tfbbb.export.manifest import Manifest
from tfbbb.prediction.questions import served_questions
from tfbbb.training import JobSpec
from tfbbb.training.familiarity import fit_familiarity
from tfbbb.training.network import make_network
from tfbbb.training.preparation import prepare

ROWS = 60
# No share of the 20 draws: there the distribution of draws far apart is flat, and any
# number between them is a quantile.
LEVELS = (0.0001, 0.053, 0.487, 0.812, 0.9999)
# Of float32, in which the networks compute; and where a small difference of a level
# moves a quantile far, or a density falls with the square of a distance.
TOLERANCE, OF_TAILS = 1e-5, 1e-4
HEAVY = ("student_t", "log_normal", "normal_mixture")
GENERATOR = np.random.default_rng(0)
X = GENERATOR.permutation(np.linspace(0, 1, ROWS))
# The cells of a column by its kind, and what the spec says of it.
KINDS: dict[str, tuple[list[Any], str | None]] = {
    "number": (GENERATOR.normal(3.0, 2.0, ROWS).tolist(), None),
    "large": (np.exp(20 * GENERATOR.normal(size=ROWS)).tolist(), None),
    "count": (GENERATOR.integers(0, 9, ROWS).tolist(), None),
    "flag": ([("yes", "no")[n % 2] for n in range(ROWS)], None),
    "date": ([f"20{n % 23:02d}-0{1 + n % 9}-{10 + n % 9}" for n in range(ROWS)], None),
    "time": ([f"{n % 24:02d}:{n:02d}" for n in range(ROWS)], None),
    "category": ([("red", "blue", "grün", "x y")[n % 4] for n in range(ROWS)], None),
    "ordered": ([("S", "M", "L")[n % 3] for n in range(ROWS)], "ordered:S,M,L"),
    "hashed": ([f"id {n * n % 31}" for n in range(ROWS)], "hashed:8"),
}
TARGETS = targets_of(X)
# TensorFlow takes numbers below 1.2e-38 for 0.
NUMBERS = [0.0, -1.0, 1e6, -1e30, 3e38, 1e-30, np.nan]
TEXTS = ["?", "", "Zürich", "x" * 500, "None", "0", "red"]
# 1900, 1970, and 9999.
DATES = [-2208988800, 0, 253402214400, 1, 86399, 951782400, 1_600_000_000]


@dataclass(frozen=True)
class Example:
    """A table and a network.

    Attributes:
        likelihood: Name of the likelihood, which chooses the target.
        columns: Kinds of the columns, each with whether cells are missing.
        model: Fields of `model` of a spec.
        familiar: Whether the model has a familiarity.
    """

    likelihood: str
    columns: tuple[tuple[str, bool], ...]
    model: Mapping[str, Any]
    familiar: bool


COLUMN = st.tuples(st.sampled_from(sorted(KINDS)), st.booleans())
EXAMPLES = st.builds(
    Example,
    likelihood=st.sampled_from(sorted(OF_TARGET)),
    columns=st.lists(COLUMN, min_size=1, max_size=5).map(tuple),
    model=st.fixed_dictionaries(
        {
            "hidden_units": st.lists(st.integers(1, 6), max_size=2),
            "activation": st.sampled_from(["relu", "tanh", "silu", "softplus"]),
            "posterior": st.sampled_from(["mean_field_normal", "low_rank_normal"]),
        }
    ),
    familiar=st.booleans(),
)


def exported(example, path):
    """Exports an untrained model of the example."""
    cells: dict[str, Any] = {"target": TARGETS[OF_TARGET[example.likelihood]]}
    kinds = {}
    for place, (kind, is_incomplete) in enumerate(example.columns):
        values, said = KINDS[kind]
        lacking = range(place, ROWS, 7) if is_incomplete else ()
        name = f"{kind} {place}"
        cells[name] = [None if n in lacking else v for n, v in enumerate(values)]
        if said is not None:
            kinds[name] = said
    spec = JobSpec.model_validate(
        {
            "target": "target",
            "features": list(cells)[1:],
            "columns": kinds,
            "model": {"likelihood": example.likelihood, **example.model},
        }
    )
    table = pa.table(cells)
    prepared = prepare(table, spec)
    model = make_network(prepared.schema, spec.model, seed=0)
    if example.familiar:
        model.familiarity = fit_familiarity(prepared.rows, prepared.schema)
    model.export_predictive(path, schema=prepared.schema, num_samples=20)
    return Manifest.read(path), prepared.schema.targets(table)


def odd_cells(feature):
    """Values of a column that training did not have, as far as a model takes them."""
    if feature.kind == "categorical":
        return [text or ("" if feature.may_miss else "?") for text in TEXTS]
    if feature.kind == "date":
        return DATES
    return [0.5 if np.isnan(x) and not feature.may_miss else x for x in NUMBERS]


def answers(model, rows, targets, levels):
    found = dict(model.predict(rows))
    for question in served_questions():
        if model.manifest.answers(question):
            about = targets if question.takes_targets else None
            asked = levels if question.takes_levels else None
            found[question.name] = model.ask(question.name, rows, asked, targets=about)
    return found


def assert_alike(found, expected, tails):
    assert found.keys() == expected.keys()
    deviation = np.sqrt(expected.get("variance", np.ones([1, 1])))
    for name, values in expected.items():
        tolerance = tails if name in ("quantiles", "intervals") else TOLERANCE
        tolerance = OF_TAILS if name == "log_prob" else tolerance
        unit: Any = 1.0
        if "variance" in expected and name not in ("log_prob", "familiarity"):
            unit = np.mean(deviation, axis=-1)
            if name in ("variance", "epistemic", "aleatoric"):
                unit = np.square(unit)
            # Rows without a finite variance.
            unit = np.where(np.isfinite(unit), unit, 0.0)
        if name == "sample":
            values, given = (np.moveaxis(x, 0, 1) for x in (values, found[name]))
        else:
            given = found[name]
        unit = np.reshape(unit, [-1, *[1] * (values.ndim - 1)])
        if values.dtype.kind in "bi":
            np.testing.assert_array_equal(given, values, name)
            continue
        same = (given == values) | (np.isnan(given) & np.isnan(values))
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(given - values) <= tolerance * (np.abs(values) + unit)
        wrong = ~(same | near)
        assert not wrong.any(), f"{name}: {given[wrong][:5]} for {values[wrong][:5]}"


def check(example):
    with tempfile.TemporaryDirectory() as directory:
        manifest, targets = exported(example, Path(directory) / "1")
        assert manifest.numpy is not None
        assert manifest.numpy.missing is None, manifest.numpy
        models = [
            tfbbb.load(Path(directory) / "1", engine=engine)
            for engine in ("numpy", "tensorflow")
        ]
        cells = {feature.name: odd_cells(feature) for feature in manifest.features}
        rows = to_tensors(cells, manifest)
        tails = OF_TAILS if example.likelihood in HEAVY else TOLERANCE
        given, wanted = (
            answers(model, rows, targets[: len(NUMBERS)], LEVELS) for model in models
        )
        assert_alike(given, wanted, tails)


def test_engines_agree_about_a_schema():
    # The moments of extreme rows are too large for single precision.
    example = Example(
        likelihood="multivariate_normal",
        columns=(("large", True), ("hashed", True)),
        model={"hidden_units": [4, 1], "posterior": "low_rank_normal"},
        familiar=True,
    )
    check(example)


# An export takes seconds, so that failures are not made smaller.
@pytest.mark.slow
@given(EXAMPLES)
@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_engines_agree_about_many_schemas(example):
    check(example)
