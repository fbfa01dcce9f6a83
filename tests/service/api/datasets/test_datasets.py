import hashlib
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tfbbb.tables.writing import write_rows

PEOPLE = b"name,age,born\nAda,36,1815-12-10\nBob,,1900-01-01\nCyd,41.5,1900-01-01\n"


def post(client, content, media_type="text/csv", **options):
    headers = {"content-type": media_type}
    return client.post("/v1/datasets", content=content, headers=headers, params=options)


@pytest.mark.usefixtures("sandbox_process")
def test_uploaded_table_is_described_and_stored_under_its_hash(datasets, data_dir):
    response = post(datasets, PEOPLE, name="people.csv")
    assert response.status_code == 201
    made = response.json()
    sha256 = hashlib.sha256(PEOPLE).hexdigest()
    assert (data_dir / "datasets" / f"{sha256}.csv").read_bytes() == PEOPLE
    assert made["sha256"] == sha256
    assert made["name"] == "people.csv"
    assert made["num_rows"] == 3
    name, age, born = made["columns"]
    assert [name["type"], age["type"], born["type"]] == ["text", "number", "date"]
    assert name["distinct"] == 3
    assert ["Ada", 1] in name["most_common"]
    assert [age["missing"], age["min"], age["max"]] == [1, 36, 41.5]
    assert age["mean"] == pytest.approx(38.75)
    assert age["std"] == pytest.approx(2.75)
    assert [born["min"], born["max"]] == ["1815-12-10", "1900-01-01"]
    assert datasets.get(f"/v1/datasets/{made['id']}").json() == made
    preview = datasets.get(f"/v1/datasets/{made['id']}/preview?rows=2").json()
    assert preview == {
        "columns": ["name", "age", "born"],
        "rows": [["Ada", 36, "1815-12-10"], ["Bob", None, "1900-01-01"]],
    }


def test_columns_say_what_a_job_takes_them_for(datasets):
    rows = [f"{i},{i % 2 == 0},${100 * i},{i % 5},same\n" for i in range(30)]
    content = "id,paid,price,rooms,constant\n" + "".join(rows)
    made = post(datasets, content.encode()).json()
    columns = {column["name"]: column for column in made["columns"]}
    kinds = {name: (c["role"], c["kind"]) for name, c in columns.items()}
    assert kinds == {
        "id": ("left out", None),
        "paid": ("feature", "boolean"),
        "price": ("feature", "number"),
        "rooms": ("feature", "number"),
        "constant": ("left out", None),
    }
    assert columns["id"]["remarks"] == [
        "It numbers the rows. Name it in `features` (or say --column id=number) to "
        "keep it."
    ]
    rooms = columns["rooms"]["histogram"]
    assert rooms == {"edges": [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5], "counts": [6] * 5}
    assert columns["constant"]["most_common"] == [["same", 30]]


def test_the_same_upload_twice_is_one_dataset(datasets):
    content = b"a,b\n1,2\n3,4\n"
    first = post(datasets, content)
    second = post(datasets, content, name="again.csv")
    assert [first.status_code, second.status_code] == [201, 200]
    assert second.json() == first.json() | {"name": "again.csv"}
    # Without a name, the bytes keep the one that they have.
    third = post(datasets, content)
    assert third.json() == second.json()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "format", ["parquet", "arrow", "csv.gz", "csv.zst", "jsonl", "xlsx"]
)
def test_the_format_is_told_by_the_content(datasets, format):
    table = pa.table({"x": np.arange(30.0), "kind": ["a", "b", None] * 10})
    file = io.BytesIO()
    write_rows(table.to_reader(), file, format)
    content = file.getvalue()
    response = post(datasets, content, "application/octet-stream", name=format)
    assert response.status_code == 201
    made = response.json()
    assert made["format"] == format
    assert made["num_rows"] == 30
    x, kind = made["columns"]
    assert x["mean"] == 14.5
    assert made["problems"] == []
    assert kind["missing"] == 10
    assert kind["most_common"] == [["a", 10], ["b", 10]]


def test_the_declared_type_decides_between_tabs_and_commas(datasets):
    content = b"last, first\tage\n" + b"x, y\t3\nz, w\t4\n" * 10
    made = post(datasets, content, "text/tab-separated-values").json()
    assert made["format"] == "tsv"
    assert [column["name"] for column in made["columns"]] == ["last, first", "age"]


def test_statistics_are_those_of_numpy_however_large_the_mean(datasets):
    values = 1e9 + np.random.default_rng(0).normal(size=90_000)
    file = io.BytesIO()
    pa.parquet.write_table(pa.table({"x": values}), file)
    (column,) = post(datasets, file.getvalue(), "").json()["columns"]
    assert column["mean"] == pytest.approx(values.mean(), rel=1e-12)
    assert column["std"] == pytest.approx(values.std(), rel=1e-6)
    assert column["distinct"] is None


def test_problems_of_the_whole_table_are_told(datasets):
    rows = "".join(f"{i},{i * i % 7},{i}\n" for i in range(5))
    assert post(datasets, f",a,b\n{rows}".encode()).json()["problems"] == [
        "The table is read as follows. UTF-8 text, separated by commas. The first "
        "column has no name and counts the rows, as an index of pandas or R does, and "
        "is left out: give it a name to keep it.",
        "The table has 5 rows; at least 10 are needed.",
    ]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("a\0b\n\x1b[31mc.csv", "ab[31mc.csv"),
        ("größe 尺寸.csv", "größe 尺寸.csv"),
        ("x" * 20_000, "x" * 200),
        ("\u202e\ud7ff", "table"),
    ],
)
def test_names_of_files_are_only_shown(datasets, data_dir, name, shown):
    content = f"a,b,c\n1,{len(name)},{ord(name[0])}\n".encode()
    before = {*data_dir.rglob("*")}
    made = post(datasets, content, name=name)
    assert made.status_code == 201
    assert made.json()["name"] == shown
    sha256 = hashlib.sha256(content).hexdigest()
    new = {*data_dir.rglob("*")} - before
    assert data_dir / "datasets" / f"{sha256}.csv" in new
    assert all(path.name.startswith((sha256, "tfbbb.sqlite3")) for path in new)


@pytest.mark.parametrize("id", ["x", "..%2F..", "0" * 24])
def test_what_is_no_id_is_not_found(datasets, id):
    for path in (id, f"{id}/preview"):
        assert datasets.get(f"/v1/datasets/{path}").status_code == 404
    assert datasets.delete(f"/v1/datasets/{id}").status_code == 404


def test_datasets_are_listed_by_pages_newest_first(datasets):
    names = [f"page-{i}" for i in range(3)]
    for name in names:
        post(datasets, f"{name},b\n1,2\n".encode(), name=name)
    query = {"limit": "2"}
    first = datasets.get("/v1/datasets", params=query).json()
    query["cursor"] = first["next_cursor"]
    second = datasets.get("/v1/datasets", params=query).json()
    found = [dataset["name"] for dataset in first["datasets"] + second["datasets"]]
    assert found[:3] == names[::-1]
    assert datasets.get("/v1/datasets?cursor=x").status_code == 400


def test_a_deleted_dataset_is_gone_with_its_file(datasets, data_dir):
    made = post(datasets, b"gone,b\n1,2\n").json()
    path = data_dir / "datasets" / f"{made['sha256']}.csv"
    assert path.exists()
    assert datasets.delete(f"/v1/datasets/{made['id']}").status_code == 204
    assert not path.exists()
    assert datasets.get(f"/v1/datasets/{made['id']}").status_code == 404
    assert post(datasets, b"gone,b\n1,2\n").status_code == 201
