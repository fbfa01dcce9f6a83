"""The same rows in every format get the same answer, bit for bit."""

import io
import json
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from service.predicting.codecs.codec import ARROW, CSV
from tests.service.serving import ask, refusal

NUMBERS = {"age": [1.1, -0.3], "bmi": [2.7, 1e-9], "bp": [3.3, 123456.789]}
PATIENTS = {
    "age": [50.5, 60.25],
    "blood pressure": [None, 81.7],
    "sex": ["f", 'm, "x"'],
    "region": ["nörth", None],
}
CLASSES = {"age": [2.0, 0.1], "bmi": [2.0, 0.2], "bp": [0.0, 0.3]}
PARAMETERS = {
    "diabetes": {"quantiles": [0.1, 0.9], "intervals": [0.5]},
    "patients": {"quantiles": [0.1, 0.9], "return_samples": True},
    "iris": {"prediction_sets": [0.5, 0.9], "return_samples": True},
}
# The columns in CSV of the outputs in JSON.
_OF_NUMBERS = {name: name for name in ("mean", "std", "epistemic", "aleatoric")}
_OF_NUMBERS["quantiles"] = "quantile_10 quantile_90"
_SAMPLES = " ".join(f"sample_{draw}" for draw in range(1, 101))
COLUMNS = {
    "diabetes": {**_OF_NUMBERS, "lower": "lower_50", "upper": "upper_50"},
    "patients": {**_OF_NUMBERS, "samples": _SAMPLES},
    "iris": {
        "class": "class",
        "probabilities": "probability_setosa probability_versicolor "
        "probability_virginica",
        "entropy": "entropy",
        "mutual_information": "mutual_information",
        "prediction_sets": "prediction_set_50 prediction_set_90",
        "samples": _SAMPLES,
    },
}
TABLES = {"diabetes": NUMBERS, "patients": PATIENTS, "iris": CLASSES}


def as_arrow(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    return sink.getvalue().to_pybytes()


def as_csv(table):
    sink = io.BytesIO()
    pa.csv.write_csv(table, sink)
    return sink.getvalue()


def send(client, model, table, **options):
    """Sends a table in Arrow, or in the format `reads`; `accept` chooses the answer."""
    given = pa.table(table)
    reads, accept = options.pop("reads", ARROW), options.pop("accept", "*/*")
    return client.post(
        f"/v1/models/{model}:predict",
        content=as_csv(given) if reads == CSV else as_arrow(given),
        params=options,
        headers={"Content-Type": reads, "Accept": accept},
    )


def read_stream(response):
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == ARROW
    with pa.ipc.open_stream(response.content) as stream:
        return stream.read_all()


def as_text(levels):
    if isinstance(levels, bool):
        return str(levels).lower()
    return ",".join(map(str, levels))


@pytest.fixture(params=list(TABLES))
def model(request):
    return str(request.param)


@pytest.fixture
def expected(client, model):
    """The answer to rows in JSON."""
    table = TABLES[model]
    rows = [
        dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)
    ]
    body = {"instances": rows, "parameters": PARAMETERS[model]}
    predictions = ask(client, model, body).json()["predictions"]
    return predictions


@pytest.mark.parametrize("reads", [ARROW, CSV])
def test_arrow_has_the_answer_of_json(client, model, expected, reads):
    options = {name: as_text(value) for name, value in PARAMETERS[model].items()}
    answer = send(client, model, TABLES[model], reads=reads, accept=ARROW, **options)
    table = read_stream(answer)
    assert table.schema.metadata[b"model_name"] == model.encode()
    assert table.schema.metadata[b"num_samples"] == b"100"
    for row, found in zip(expected, table.to_pylist(), strict=True):
        assert found.pop("warnings") == []
        assert found.keys() == row.keys()
        for name, values in found.items():
            if isinstance(row[name], str) or name == "prediction_sets":
                assert values == row[name]
            else:
                np.testing.assert_array_equal(
                    np.float32(values), np.float32(row[name]), name
                )


def test_csv_has_the_answer_of_json(client, model, expected):
    options = {name: as_text(value) for name, value in PARAMETERS[model].items()}
    answer = send(client, model, TABLES[model], reads=CSV, **options)
    assert answer.headers["content-type"].startswith(CSV)
    assert answer.headers["num-samples"] == "100"
    lines = pa.csv.read_csv(io.BytesIO(answer.content)).to_pylist()
    for row, found in zip(expected, lines, strict=True):
        for name, column in COLUMNS[model].items():
            given = [found[one] for one in column.split()]
            if name == "prediction_sets":
                assert [json.loads(text) for text in given] == row[name]
            elif isinstance(row[name], str):
                assert given == [row[name]]
            else:
                np.testing.assert_array_equal(
                    np.float32(given), np.float32(row[name]).reshape(-1), name
                )


@pytest.mark.parametrize(
    "columns",
    [
        {"age": pa.array([1, 2], pa.int8()).dictionary_encode()},
        {"age": pa.array([Decimal("1.00"), Decimal("2.00")])},
        {"age": pa.array([True, False]), "row": pa.array([1, 2])},
    ],
    ids=lambda columns: str(columns["age"].type),
)
def test_arrow_types_are_read_as_numbers(client, columns):
    numbers = [1.0, 0.0] if columns["age"].type == pa.bool_() else [1.0, 2.0]
    other = {"bmi": [1.0, 2.0], "bp": [0.0, 0.0]}
    found = read_stream(send(client, "diabetes", columns | other))
    rows = [[age, bmi, 0.0] for age, bmi in zip(numbers, other["bmi"], strict=True)]
    expected = ask(client, "diabetes", {"instances": rows}).json()["predictions"]
    assert found["mean"].to_pylist() == [
        pytest.approx(row["mean"], rel=1e-7) for row in expected
    ]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("text/*", CSV),
        ("text/html, text/csv;q=0.6, application/json;q=0.4", CSV),
        ("application/*;q=0.1, text/csv", ARROW),
    ],
)
def test_accept_chooses_the_format(client, accept, kind):
    answer = send(client, "diabetes", NUMBERS, accept=accept)
    assert answer.headers["content-type"].partition(";")[0] == kind


def test_format_that_is_not_written_is_refused(client):
    answer = send(client, "diabetes", NUMBERS, accept="text/html, image/*")
    assert "answers in application/json, " in refusal(answer, 406)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ({"age": [1.0], "bmi": [2.0]}, {}, "The column 'bp' is lacking"),
        (NUMBERS, {"quantile": "0.5"}, "`parameters.quantile` is unknown"),
        (NUMBERS | {"age": [1.0, None]}, {}, "Row 2, column 'age' has no value"),
        (
            NUMBERS | {"age": ["1", "x"]},
            {},
            "Row 2: Column 'age' has 'x', which is not a number",
        ),
    ],
)
@pytest.mark.parametrize("reads", [ARROW, CSV])
def test_mistake_in_a_table_is_described(client, table, options, message, reads):
    answer = send(client, "diabetes", table, reads=reads, **options)
    assert answer.status_code == 400
    assert re.search(message, answer.json()["error"])
