"""What was understood of a table survives training, export, serving and prediction."""

import datetime
import json
from dataclasses import replace

import numpy as np
import onnx
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfbbb
from service.predicting.table import from_columns, from_rows
from tests.export.test_onnx_file import assert_as_live, run
from tests.served_answer import served_answer
from tests.tables.test_given_table import CELLS, columns_of
from tfbbb.export.inputs import InputError, find_faults, to_tensors
from tfbbb.export.manifest import Feature, Manifest
from tfbbb.layers import DenseVariational
from tfbbb.tables import Schema, TableError, preprocessing
from tfbbb.tables.scan import read_cells

ROWS = 60


def cells():
    generator = np.random.default_rng(0)
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(int(i)) for i in
            generator.integers(0, 900, ROWS)]  # fmt: skip
    price = generator.uniform(-2000, 9000, ROWS)
    return {
        "price": [f"(${-p:,.2f})" if p < 0 else f"${p:,.2f}" for p in price],
        "eu": [f"{p / 7:.3f}".replace(".", ",") + " €" for p in price[::-1]],
        "share": [f"{x:.1f}%" for x in generator.uniform(0, 99, ROWS)],
        "sold": [day.strftime("%d.%m.%Y") for day in days],
        "at": [f"{i % 24:02d}:{i % 60:02d}" for i in range(ROWS)],
        "garden": [("Yes", "no", "NO")[i % 3] for i in range(ROWS)],
        "size": [("S", "M", "L")[i % 3] if i % 7 else "?" for i in range(ROWS)],
        "kind": [("red", "blue", "?")[i % 3] for i in range(ROWS)],
        "zip": [f"0{i % 4}1" for i in range(ROWS)],
        "plain": [f"{x:.4f}" for x in generator.normal(size=ROWS)],
        "y": [f"{x:,.1f} km" for x in 9999 * generator.normal(size=ROWS)],
    }


COLUMNS = {"size": "ordered:S,M,L", "zip": "text"}
# Whatever JSON can hold, typed and as texts.
JSON_COLUMN = st.one_of(
    columns_of(*CELLS),
    columns_of(st.floats(width=32, allow_nan=False, allow_infinity=False) | st.none()),
    columns_of(st.integers(-(2**40), 2**40) | st.none()),
    columns_of(st.booleans() | st.none()),
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A model trained for a moment, exported and loaded, and its training table."""
    directory = tmp_path_factory.mktemp("columns")
    table = pa.table(cells())
    schema = Schema.infer(table, "y", columns=COLUMNS)
    inputs, features = preprocessing(schema)
    model = tfbbb.BayesianModel(inputs, DenseVariational(1)(features))
    model.compile(tfbbb.optimizers.Adam(0.05))
    model.fit(schema.inputs(table), schema.targets(table), verbose=0)
    model.export_predictive(directory / "1", schema=schema)
    return model, schema, table, tfbbb.load(directory)


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype, name
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_kinds_are_kept_in_the_manifest(exported):
    *_, schema, _, loaded = exported
    meanings = {f.name: f.column.meaning for f in loaded.manifest.features}
    assert (
        meanings
        == {c.name: c.meaning for c in schema.features}
        == {
            **dict.fromkeys(["price", "eu", "share", "plain"], "number"),
            **{
                "sold": "date",
                "at": "duration",
                "garden": "boolean",
                "size": "ordered",
            },
            **{"kind": "text", "zip": "text"},
        }
    )
    manifest = Manifest.from_json(loaded.manifest.to_json())
    assert manifest == loaded.manifest
    assert all(feature.imputed for feature in manifest.features)


def test_files_tables_and_requests_give_the_same_tensors(exported, tmp_path):
    _, schema, table, loaded = exported
    manifest = loaded.manifest
    expected = to_tensors(schema.inputs(table), manifest)
    rows = table.drop_columns("y").to_pylist()
    columns = {name: column.to_pylist() for name, column in
               zip(table.column_names, table.columns, strict=True)}  # fmt: skip
    assert_same(to_tensors(columns, manifest), expected)
    requests = json.loads(
        json.dumps([rows, columns, [[*row.values()] for row in rows]])
    )
    assert_same(
        to_tensors(from_rows(requests[0], manifest, "instances"), manifest), expected
    )
    assert_same(to_tensors(from_columns(requests[1], manifest), manifest), expected)
    assert_same(
        to_tensors(from_rows(requests[2], manifest, "instances"), manifest), expected
    )
    # A row alone is read as it is among others.
    for place in (0, 7, 59):
        alone = from_rows([rows[place]], manifest, "instances")
        one = {name: values[place : place + 1] for name, values in expected.items()}
        assert_same(to_tensors(alone, manifest), one)
    from tfbbb.tables.writing import write_table

    write_table(table, tmp_path / "table.csv")
    read = read_cells(tmp_path / "table.csv")
    features = {f.tensor: f.column.values(read) for f in manifest.features}
    assert_same(to_tensors({f.name: features[f.tensor] for f in manifest.features},
                           manifest), expected)  # fmt: skip


def described(column):
    """A column as the feature of a manifest."""
    notation = None if column.notation is None else column.notation.to_dict()
    listed = column.kind == "categorical" and not column.buckets
    return Feature(
        column.name,
        column.kind,
        missing=column.missing,
        tensor=column.name,
        imputed=True,
        notation=notation,
        low=column.low,
        high=column.high,
        categories=column.categories if listed else None,
    )


@settings(max_examples=25, deadline=None, derandomize=True)
@given(columns=st.lists(JSON_COLUMN, min_size=1, max_size=3))
def test_requests_are_read_as_any_training_table_is(exported, columns):
    cells = {f"x{i}": pa.array(values) for i, values in enumerate(columns)}
    table = pa.table({**cells, "y": np.arange(24.0) ** 2})
    try:
        schema = Schema.infer(table, "y")
    except TableError:
        return
    features = tuple(described(column) for column in schema.features)
    kept = replace(exported[-1].manifest, inputs="columns", features=features)
    manifest = Manifest.from_json(kept.to_json())
    values = {column.name: column.values(table) for column in schema.features}
    expected = to_tensors(values, manifest)
    rows = json.loads(json.dumps(table.drop_columns("y").to_pylist()))
    assert_same(to_tensors(from_rows(rows, manifest, "instances"), manifest), expected)
    alone = to_tensors(from_rows(rows[5:6], manifest, "instances"), manifest)
    assert_same(alone, {name: found[5:6] for name, found in expected.items()})


def test_marks_of_the_training_table_are_marks_in_requests(exported):
    days = [20220100 + day for day in range(1, 22)]
    table = pa.table(
        {
            "income": [*range(100, 121), -999, -999, 160],
            "when": [*days, 20220215, 20220216, 20230101],
            "size": [*(f"{i}.5" for i in range(20)), "<5", "7*", *["void"] * 2],
            "age": ["18-24", "25-34", "65+", "unknown"] * 6,
            "y": np.arange(24.0) * 5 % 7,
        }
    )
    as_text = table.cast(pa.schema([(n, pa.string()) for n in table.column_names]))
    features = [described(column) for column in Schema.infer(table, "y").features]
    kept = replace(exported[-1].manifest, inputs="columns", features=tuple(features))
    manifest = Manifest.from_json(kept.to_json())
    expected = {f.tensor: f.column.values(table) for f in features}
    assert [
        int(np.isnan(expected[name]).sum()) for name in ("income", "size", "age")
    ] == [2, 2, 6]
    for asked in (
        from_rows(table.drop_columns("y").to_pylist(), manifest, "instances"),
        from_columns(table, manifest),
        {name: table[name].to_numpy() for name in table.column_names},
        table.to_pandas(),
        from_columns(as_text, manifest),
    ):
        assert_same(to_tensors(asked, manifest), expected)


def test_numbers_and_dates_are_taken_for_texts(exported):
    _, schema, table, loaded = exported
    texts = {name: table[name].to_pylist()[:3] for name in table.column_names}
    expected = to_tensors(texts, loaded.manifest)
    inputs = schema.inputs(table.slice(0, 3))
    numbers = {name: values.tolist() for name, values in inputs.items()}
    assert_same(to_tensors(numbers, loaded.manifest), expected)
    days = [datetime.datetime.strptime(text, "%d.%m.%Y") for text in texts["sold"]]
    for dates in (days, [day.date() for day in days], np.array(days, "datetime64[ns]")):
        assert_same(to_tensors({**texts, "sold": dates}, loaded.manifest), expected)


def test_live_and_exported_models_answer_alike(exported):
    model, schema, table, loaded = exported
    texts = {name: table[name].to_pylist() for name in table.column_names}
    live = model.predictive(schema.inputs(table), num_samples=20, seed=1)
    answer = loaded.predictive(texts, num_samples=20, seed=1)
    # Single precision of standard units: the targets have a deviation of 1e4.
    np.testing.assert_allclose(answer.mean, live.mean, rtol=1e-5, atol=1e-2)


def test_missing_and_unseen_values_are_imputed_and_flagged(exported):
    _, _, table, loaded = exported
    row = {name: table[name][1].as_py() for name in table.column_names}
    asked = {**row, "price": None, "sold": "n/a", "zip": "999", "eu": "1.234.567,5 €"}
    given = {name: [value, row[name]] for name, value in asked.items()}
    tensors = to_tensors(given, loaded.manifest)
    first, second = find_faults(tensors, loaded.manifest).by_row()
    assert second == []
    assert [sentence.split(" ", 3)[1] for sentence in first] == [
        "'price'",
        "'eu'",
        "'sold'",
        "'zip'",
    ]
    mean = loaded.predict(given)["mean"]
    assert np.isfinite(mean).all()
    assert mean[0] != mean[1]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "price",
            "12 €€",
            r"Row 2, column 'price' needs a number \(currency, thousands",
        ),
        ("sold", "31.02.2020", r"Row 2, column 'sold' needs a date \(day first\)"),
        ("sold", 1e300, "Row 2, column 'sold' needs a date"),
        ("garden", "perhaps", "Row 2, column 'garden' needs a boolean"),
        ("kind", 7, "Row 2, column 'kind' needs text"),
        ("share", "\ud800", "Row 2, column 'share' needs a number"),
    ],
)
def test_cells_in_another_notation_are_refused_with_their_row(
    exported, name, value, message
):
    *_, table, loaded = exported
    given = {name: table[name].to_pylist()[:2] for name in table.column_names}
    given[name][1] = value
    with pytest.raises(InputError, match=message):
        to_tensors(given, loaded.manifest)


def test_the_service_answers_texts_and_adds_warnings(exported):
    *_, table, loaded = exported
    rows = table.drop_columns("y").slice(0, 3).to_pylist()
    rows[1] = {**rows[1], "price": None, "kind": "green"}
    parameters = {"num_samples": 20, "seed": 1}
    found = served_answer(loaded, {"instances": rows, "parameters": parameters})[
        "predictions"
    ]
    means = loaded.predict({k: [row[k] for row in rows] for k in rows[0]}, 20, 1)
    np.testing.assert_allclose([row["mean"] for row in found], means["mean"], rtol=1e-6)
    assert ["warnings" in row for row in found] == [False, True, False]
    assert found[1]["warnings"] == [
        "Column 'price' has no value; the mean of training is assumed.",
        "Column 'kind' has the category 'green', unseen in training.",
    ]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    by_columns = served_answer(loaded, {"inputs": columns, "parameters": parameters})[
        "outputs"
    ]
    assert by_columns["warnings"] == [[], found[1]["warnings"], []]
    columns = {name: values[::2] for name, values in columns.items()}
    assert "warnings" not in served_answer(loaded, {"inputs": columns})["outputs"]


def test_frames_are_read_by_position_whatever_their_index(exported):
    *_, table, loaded = exported
    frame = table.to_pandas()
    frame["sold"] = pd.to_datetime(frame["sold"], format="%d.%m.%Y")
    given = {name: frame[name].tolist() for name in frame}
    expected = to_tensors(given, loaded.manifest)
    for index in (range(100, 160), range(60)[::-1]):
        moved = frame.set_index(pd.Index(index))
        assert_same(to_tensors(moved, loaded.manifest), expected)


def test_an_onnx_file_of_every_kind_answers_as_live(exported, tmp_path):
    live, schema, table, loaded = exported
    path = tmp_path / "a.onnx"
    live.export_predictive(path, format="onnx", schema=schema, units="as sold")
    columns = {name: table[name].to_pylist() for name in table.column_names}
    found = run(path, to_tensors(columns, loaded.manifest))
    assert_as_live(found, live.predictive(schema.inputs(table), method="weight"))
    (entry,) = onnx.load(path).metadata_props
    assert entry.key == "tfbbb"
    described = json.loads(entry.value)
    features = loaded.manifest.features
    assert described["features"] == [
        {"name": f.name, "kind": f.kind, "tensor": f.tensor} for f in features
    ]
    assert (described["target"], described["units"]) == ("y", "as sold")
    assert (described["num_samples"], described["seed"]) == (100, 0)
    onnx.checker.check_model(onnx.load(path), full_check=True)
