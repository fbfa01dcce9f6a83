"""What keys may have, what the disk can take, and what outlives whom."""

import errno
import os
import tracemalloc
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from service.api import sandbox
from service.api.datasets import store
from service.shared.database import Database
from service.shared.database.tables import Job
from service.shared.job_state import UNFINISHED, JobState
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.service.queued import submitted
from tests.service.serving import refusal, serving

TABLE = b"a,b\n1,2\n"


def settings_of(directory, **changes):
    return Settings.model_validate(
        {
            "models": directory / "models",
            "data_dir": directory / "data",
            "job_slots": 0,
            **changes,
        }
    )


def post(client, content):
    return client.post("/v1/datasets", content=content)


def test_dataset_of_a_job_stays_until_the_job_ends(datasets, data_dir):
    made = post(datasets, b"needed,b\n1,2\n").json()
    database = Database(Settings(data_dir=data_dir).effective_database_url)
    (job_id,) = submitted(
        Queue(database, Settings(data_dir=data_dir)), dataset_id=made["id"]
    )
    for state in UNFINISHED:
        with database.writing() as session:
            session.get_one(Job, job_id).state = state
        refused = datasets.delete(f"/v1/datasets/{made['id']}")
        assert job_id in refusal(refused, 409)
    with database.writing() as session:
        session.get_one(Job, job_id).state = JobState.FAILED
    assert datasets.delete(f"/v1/datasets/{made['id']}").status_code == 204
    with database.reading() as session:
        assert session.get_one(Job, job_id).dataset_id is None
    database.close()


def test_start_removes_old_uploads_and_unknown_datasets(tmp_path):
    settings = settings_of(tmp_path)
    with serving(settings) as client:
        made = post(client, TABLE).json()
    uploads, stored = settings.data_dir / "uploads", settings.data_dir / "datasets"
    (uploads / "dead.upload").write_bytes(b"a,b")
    os.utime(uploads / "dead.upload", (0, 0))
    (stored / f"{'0' * 64}.csv").write_bytes(b"a,b")
    (stored / "notes.txt").write_text("of the operator")
    alive = store.UploadFile(uploads, 0)
    with serving(settings) as client:
        assert client.get(f"/v1/datasets/{made['id']}/preview").status_code == 200
        assert [*uploads.iterdir()] == [alive.path]
        assert {path.name for path in stored.iterdir()} == {
            f"{made['sha256']}.csv",
            "notes.txt",
        }
    alive.close()
    assert [*uploads.iterdir()] == []


def test_a_disk_that_is_nearly_full_takes_nothing_in(tmp_path):
    with serving(settings_of(tmp_path, min_free_bytes=2**60)) as client:
        response = post(client, TABLE)
        assert "TFBBB_MIN_FREE_BYTES" in refusal(response, 507)
        assert client.get("/v1/datasets").status_code == 200


@pytest.mark.parametrize(
    ("call", "codes"),
    [
        ("write", {errno.ENOSPC: 507, errno.EROFS: 503, errno.EIO: 503}),
        # After the inspection of the table, which takes a process.
        ("fsync", {errno.ENOSPC: 507}),
        ("replace", {errno.EIO: 503}),
    ],
)
def test_what_the_disk_refuses_is_said_and_nothing_stays(
    datasets, data_dir, monkeypatch, call, codes
):
    table = f"{call},b\n1,2\n".encode()
    stored = {*(data_dir / "datasets").glob("*")}
    for code, status in codes.items():

        def fail(*arguments, code=code):
            raise OSError(code, os.strerror(code))

        with monkeypatch.context() as patch:
            patch.setattr(Path if call == "replace" else store.os, call, fail)
            response = post(datasets, table)
        assert "operator must" in refusal(response, status)
        assert [*(data_dir / "uploads").iterdir()] == []
        assert {*(data_dir / "datasets").glob("*")} == stored
    assert post(datasets, table).status_code == 201


@pytest.mark.usefixtures("sandbox_process")
def test_service_holds_only_a_few_blocks_of_an_upload(tmp_path):
    line = b"1," + b"x" * 9_997 + b"\n"

    def content():
        yield b"a,b\n"
        for _ in range(400):
            yield line * 10

    with serving(settings_of(tmp_path)) as client:
        post(client, TABLE)
        tracemalloc.start()
        try:
            response = client.post("/v1/datasets", content=content())
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert response.status_code == 201
    assert response.json()["num_bytes"] > 40_000_000
    assert most < 20_000_000


@pytest.mark.usefixtures("sandbox_process")
def test_bomb_ends_only_the_process_that_reads_it(tmp_path):
    # Sixty thousand rows of a megabyte each.
    words = pa.DictionaryArray.from_arrays(
        pa.array([0] * 60_000, pa.int32()), pa.array(["x" * 1_000_000])
    )
    # The file doesn't say that it was a dictionary: whoever reads it spells it out.
    path = tmp_path / "bomb.parquet"
    table = pa.table({"a": words})
    pa.parquet.write_table(table, path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 10_000
    settings = settings_of(tmp_path, inspection_memory_bytes=2**29)
    with serving(settings) as client:
        response = post(client, path.read_bytes())
        assert "memory" in refusal(response, 422)
        assert post(client, TABLE).status_code == 201


@pytest.mark.usefixtures("sandbox_process")
def test_a_table_that_takes_too_long_is_given_up(tmp_path):
    compressor = zlib.compressobj(level=1, wbits=31)

    def compressed(text):
        # After a full flush the same text gives the same bytes.
        return compressor.compress(text) + compressor.flush(zlib.Z_FULL_FLUSH)

    # Without an end, which nobody comes to.
    content = compressed(b"a,b\n") + 3000 * compressed(b"0.12345,6.54321\n" * 2**16)
    with serving(settings_of(tmp_path, inspection_seconds=1)) as client:
        response = post(client, content)
        assert "longer to read than 1 s" in refusal(response, 422)
        assert post(client, TABLE).status_code == 201


def test_reader_of_tables_gets_no_secret(monkeypatch):
    for name in ("TFBBB_ADMIN_KEY", "TFBBB_DATABASE_URL", "PGPASSWORD"):
        monkeypatch.setenv(name, "secret")
    assert "secret" not in sandbox._environment().values()
