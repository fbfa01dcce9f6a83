"""Tables that are uploaded in several files."""

import hashlib
from pathlib import Path
from typing import Any

import httpx
import pytest

NORTH = b"age,city\n36,Oslo\n41,Bergen\n"
SOUTH = b"city,age\nRome,28.5\n"


def post_files(client: httpx.Client, *files: tuple[str, bytes]) -> httpx.Response:
    return client.post("/v1/datasets", files=[("file", file) for file in files])


@pytest.fixture(scope="module")
def made(datasets: httpx.Client) -> dict[str, Any]:
    response = post_files(datasets, ("north.csv", NORTH), ("south.csv", SOUTH))
    assert response.status_code == 201
    return dict(response.json())


def test_files_are_one_dataset(made: dict[str, Any], datasets: httpx.Client) -> None:
    lines = "".join(f"{hashlib.sha256(p).hexdigest()} csv\n" for p in (NORTH, SOUTH))
    assert made["sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    assert (made["format"], made["num_rows"]) == ("parts", 3)
    assert made["name"] == "north.csv"
    assert made["num_bytes"] == len(NORTH + SOUTH)
    parts = [(part["name"], part["num_rows"]) for part in made["parts"]]
    assert parts == [("north.csv", 2), ("south.csv", 1)]
    assert made["columns"][0]["mean"] == pytest.approx(35.1667)
    assert datasets.get(f"/v1/datasets/{made['id']}").json() == made
    preview = datasets.get(f"/v1/datasets/{made['id']}/preview").json()
    assert preview["rows"] == [[36.0, "Oslo"], [41.0, "Bergen"], [28.5, "Rome"]]


def test_same_files_again_are_the_same_dataset(
    made: dict[str, Any], datasets: httpx.Client
) -> None:
    again = post_files(datasets, ("a.csv", NORTH), ("b.csv", SOUTH))
    # With the name that it was given last.
    assert (again.status_code, again.json()) == (200, {**made, "name": "a.csv"})
    other_order = post_files(datasets, ("b.csv", SOUTH), ("a.csv", NORTH))
    assert other_order.status_code == 201


def test_deleted_dataset_leaves_no_file(datasets: httpx.Client, data_dir: Path) -> None:
    before = {*data_dir.rglob("*")}
    made = post_files(datasets, ("a.csv", b"x,y\n1,2\n"), ("b.csv", b"x,y\n3,4\n"))
    place = data_dir / "datasets" / f"{made.json()['sha256']}.parts"
    assert sorted(path.name for path in place.iterdir()) == ["00001.csv", "00002.csv"]
    assert datasets.delete(f"/v1/datasets/{made.json()['id']}").status_code == 204
    assert {*data_dir.rglob("*")} - before <= {data_dir / "uploads"}


@pytest.mark.parametrize(
    ("second", "status", "message"),
    [
        (b"age,city\n30,Rome\nold,Pisa\n", 422, "south.csv, line 3: the column 'age'"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), 415, "south.csv: The upload must be CSV"),
    ],
    ids=str,
)
def test_other_columns_are_refused_and_nothing_is_left(
    datasets: httpx.Client, data_dir: Path, second: bytes, status: int, message: str
) -> None:
    before = {*data_dir.rglob("*")}
    response = post_files(datasets, ("north.csv", NORTH), ("south.csv", second))
    assert response.status_code == status
    assert message in response.json()["error"]
    assert {*data_dir.rglob("*")} - before <= {data_dir / "uploads"}


def test_files_of_one_name_are_told_apart(datasets: httpx.Client) -> None:
    response = post_files(datasets, ("a.csv", b"x\n1\n"), ("a.csv", b"y\n1\n"))
    assert "a.csv (file 2), line 1: every file needs" in response.json()["error"]
