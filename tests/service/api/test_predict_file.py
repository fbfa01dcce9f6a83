"""Files of every format, predicted by `:predict-file`."""

import io
import json

import pyarrow as pa
import pytest

from service.shared.settings import Settings
from tests.service.sandboxed import reading_here
from tests.service.serving import ask, serving
from tests.waiting import wait_until
from tfbbb.tables import read_table
from tfbbb.tables.writing import write_rows

URL = "/v1/models/diabetes:predict-file"
ROWS = pa.table(
    {
        "id": ["a7", "b8", "c9"],
        "age": [1.0, 2.0, 30.0],
        "bmi": [0.5, 1.5, 2.5],
        "bp": [1.0, 1.0, 1.0],
        "mean": ["x", "y", None],
    }
)
PREDICTED = ["mean", "std", "lower_90", "upper_90", "epistemic", "aleatoric"]
FORMATS = ("csv", "csv.zst", "jsonl", "parquet", "xlsx")


@pytest.fixture(autouse=True)
def predictions_here(request):
    """Predicts in this process, which takes no second to start."""
    if "sandbox_process" in request.fixturenames:
        yield
    else:
        with reading_here():
            yield


@pytest.fixture
def sandbox_process():
    """Lets a process predict the files of a test."""


def written(table, format, dialect=None):
    file = io.BytesIO()
    write_rows(table.to_reader(), file, format, dialect)
    return file.getvalue()


def send(client, content, name, url=URL, **headers):
    given = {"Content-Type": "application/octet-stream"}
    named = f"{url}{'&' if '?' in url else '?'}name={name}"
    return client.post(named, content=content, headers=given | headers)


@pytest.mark.few(4)
@pytest.mark.parametrize("format", FORMATS)
def test_a_file_comes_back_in_its_format_with_predictions(client, tmp_path, format):
    answer = send(client, written(ROWS, format), f"new.{format}")
    assert answer.status_code == 200, answer.text
    name = f"new-predicted.{format}"
    assert answer.headers["content-disposition"].endswith(name)
    assert answer.headers["model-version"] == "2"
    (tmp_path / name).write_bytes(answer.content)
    found = read_table(tmp_path / name)
    assert found.column_names == [*ROWS.column_names[:-1], "mean_given", *PREDICTED]
    assert found["id"].to_pylist() == ["a7", "b8", "c9"]
    assert found["mean_given"].to_pylist() == ["x", "y", None]
    rows = ROWS.select(["age", "bmi", "bp"]).to_pylist()
    body = {"instances": rows, "parameters": {"intervals": [0.9]}}
    for row, one in zip(
        found.to_pylist(),
        ask(client, "diabetes", body).json()["predictions"],
        strict=True,
    ):
        assert row["mean"] == pytest.approx(one["mean"][0], abs=1e-4)
        assert row["lower_90"] == pytest.approx(one["lower"][0][0], abs=1e-4)
        assert row["epistemic"] == pytest.approx(one["epistemic"][0], rel=1e-4)


def test_csv_keeps_its_texts_its_delimiter_and_its_decimal_mark(client):
    text = "Haus;age;bmi;bp;Preis\nÄ;1,50;007;1;1.234,50\n'B;2,00;1,5;1;\n"
    answer = send(client, text.encode("cp1252"), "neu.csv")
    header, first, second = answer.content.decode("utf-8-sig").splitlines()
    assert answer.content.startswith(b"\xef\xbb\xbf")
    assert header == ";".join(["Haus", "age", "bmi", "bp", "Preis", *PREDICTED])
    assert first.startswith("Ä;1,50;007;1;1.234,50;")
    assert second.startswith("'B;2,00;1,5;1;;")
    mean = float(first.split(";")[5].replace(",", "."))
    # The model doubles the sum of the features.
    assert mean == pytest.approx(2 * (1.5 + 7 + 1), abs=0.1)


def test_blocks_are_joined_in_their_order(saved_models, tmp_path):
    # Of the three blocks, each is too much work until it was halved.
    settings = Settings(models=saved_models, max_work=100_000, data_dir=tmp_path)
    numbers = [float(row) for row in range(4500)]
    table = pa.table({"age": numbers, "bmi": numbers, "bp": [0.0] * 4500})
    with serving(settings) as client:
        answer = send(client, written(table, "parquet"), "many.parquet")
        assert answer.status_code == 200, answer.text
        (tmp_path / "out.parquet").write_bytes(answer.content)
        found = read_table(tmp_path / "out.parquet")
        assert found["mean"].to_pylist() == pytest.approx(
            [4 * row for row in numbers], abs=0.5
        )
        wait_until(lambda: not list((tmp_path / "uploads").iterdir()))


@pytest.mark.usefixtures("sandbox_process")
def test_progress_comes_before_the_file(client):
    progress = {"Accept": "application/vnd.tfbbb.progress"}
    answer = send(client, written(ROWS, "xlsx"), "new.xlsx", **progress)
    first, preview, last, content = answer.content.split(b"\n", 3)
    assert json.loads(first) == {"rows": 0, "of": 3}
    shown = json.loads(preview)["preview"]
    assert shown["given"] == [*ROWS.column_names[:-1], "mean_given"]
    assert shown["predicted"] == PREDICTED
    assert [row[:2] for row in shown["first"]] == [[1, "a7"], [2, "b8"], [3, "c9"]]
    assert sorted(shown["doubtful"]) == shown["first"]
    assert json.loads(last) == {"file": "new-predicted.xlsx", "num_bytes": len(content)}
    assert content.startswith(b"PK")


def test_columns_that_are_not_as_in_training_are_said(client):
    patients = pa.table(
        {
            "age": [50.0] * 3000,
            "blood pressure": ["high"] * 2999 + ["110"],
            "sex": ["f"] * 3000,
            "region": ["north"] * 3000,
        }
    )
    progress = {"Accept": "application/vnd.tfbbb.progress"}
    url = "/v1/models/patients:predict-file"
    answer = send(client, written(patients, "parquet"), "a.parquet", url, **progress)
    preview = next(line for line in answer.content.split(b"\n") if b"preview" in line)
    assert json.loads(preview)["preview"]["remarks"] == [
        "Column 'blood pressure' is not as in training in 2999 of 3000 rows: 2999 "
        "cannot be read, such as 'high', which is not a number."
    ]


def test_several_levels_and_classes_have_their_columns(client):
    url = f"{URL}?intervals=0.5,0.9&quantiles=0.1"
    header = send(client, written(ROWS, "csv"), "a.csv", url).text.splitlines()[0]
    assert header.split(",")[7:] == [
        *("lower_50", "upper_50", "lower_90", "upper_90"),
        *("epistemic", "aleatoric", "quantile_10"),
    ]
    url = f"{URL}?intervals=5e-05,0.9"
    header = send(client, written(ROWS, "csv"), "a.csv", url).text.splitlines()[0]
    assert {"lower_0.005", "upper_0.005", "lower_90"} < set(header.split(","))
    found = send(
        client, written(flowers(client), "csv"), "a.csv", "/v1/models/iris:predict-file"
    )
    assert found.text.splitlines()[0].split(",")[-6:] == [
        "class",
        *(f"probability_{name}" for name in ("setosa", "versicolor", "virginica")),
        *("entropy", "mutual_information"),
    ], found.text


def flowers(client):
    """One row for the model of classes."""
    names = client.get("/v1/models/iris").json()["description"]["features"]
    return pa.table({feature["name"]: [1.0] for feature in names})


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (b"%PDF-1.7", 415, "a PDF document"),
        (b"a,b\n1,2\n", 422, "none of the columns that the model reads: 'age'"),
        (b"age,bmi,bp\n1,2,3\n4,5,x\n", 400, "Row 2"),
    ],
)
def test_a_file_that_does_not_fit_says_why(client, content, status, message):
    answer = send(client, content, "bad.csv")
    assert (answer.status_code, message in answer.json()["error"]) == (status, True), (
        answer.text
    )


def test_versions_labels_and_parameters_are_those_of_predict(client):
    content = written(ROWS, "csv")
    first = send(
        client, content, "a.csv", "/v1/models/diabetes/versions/1:predict-file"
    )
    assert first.headers["model-version"] == "1"
    unknown = "/v1/models/diabetes/labels/nobody:predict-file"
    assert send(client, content, "a.csv", unknown).status_code == 404
    refused = send(client, content, "a.csv", f"{URL}?return_samples=true")
    assert (refused.status_code, refused.json()["field"]) == (400, "return_samples")
    wrong = send(client, content, "a.csv", f"{URL}?intervals=2")
    assert (wrong.status_code, "intervals" in wrong.json()["error"]) == (400, True)
