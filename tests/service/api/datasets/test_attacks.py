"""Uploads that nobody sends in good faith, and those that only look like it."""

import gzip
import io
import socket
import threading
import zlib

import pyarrow as pa
import pyarrow.parquet
import pytest

from service.api.datasets import uploading
from tests.service.serving import refusal
from tests.tables.workbooks import write_xlsx
from tests.waiting import wait_until


def leftovers(data_dir):
    return [*(data_dir / "uploads").iterdir()]


@pytest.fixture(autouse=True)
def nothing_is_left(datasets, data_dir):
    """Whatever comes, no temporary file stays, and the service lives on."""
    stored = {*(data_dir / "datasets").glob("*")}
    yield
    wait_until(lambda: not leftovers(data_dir))
    assert datasets.get("/health/live").status_code == 200
    ids = [d["id"] for d in datasets.get("/v1/datasets").json()["datasets"]]
    for id in ids:
        datasets.delete(f"/v1/datasets/{id}")
    assert {*(data_dir / "datasets").glob("*")} <= stored


def parquet(table):
    file = io.BytesIO()
    pa.parquet.write_table(table, file, row_group_size=len(table))
    return file.getvalue()


def workbook_of(stated_bytes):
    """A workbook that states another size of a file than that of its content."""
    file = io.BytesIO()
    strings = b" " * 123_456
    write_xlsx(file, {"a": [["x"], [1]]}, **{"xl/sharedStrings.xml": strings})
    size, stated = (
        len(strings).to_bytes(4, "little"),
        stated_bytes.to_bytes(4, "little"),
    )
    assert file.getvalue().count(size) == 2
    return file.getvalue().replace(size, stated)


def deflated(piece, times):
    compressor = zlib.compressobj(9, wbits=31)
    return b"".join([*(compressor.compress(piece) for _ in range(times))]) + (
        compressor.flush()
    )


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, but the header has 2 cells"),
        (b"a\x81,b\n1,2\n", "not UTF-8 text: line 1"),
        (b"a,b\n", "has a header but no rows"),
        (b'{"a": 1}\n{"b": ' + b"[" * 500_000, "line 2 is not a JSON object"),
        (
            b"".join(b'{"key%d": 1}\n' % i for i in range(50_000)),
            "50000 different keys, most of them missing",
        ),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-10], "cannot be read as csv.gz"),
        (deflated(b"1,2\n" * 2**18, 100), "at most 100000 rows"),
        (deflated(b"0" * 2**20, 200), "longer than"),
        (
            gzip.compress(b"a\n", mtime=0) + deflated(b"x" * 2**20 + b"\n", 100),
            "at most 50000000 decompressed bytes",
        ),
        (b"PAR1" + b"\0" * 100 + b"PAR1", "cannot be read as parquet"),
        (parquet(pa.table({"a": pa.nulls(10_000_000, pa.float64())})), "100000 rows"),
        (workbook_of(stated_bytes=2**30), "more than 536870912 bytes of XML"),
    ],
)
def test_file_without_a_table_is_refused_with_the_reason(datasets, content, message):
    response = datasets.post("/v1/datasets", content=content)
    assert message in refusal(response, 422)
    assert "/uploads/" not in response.json()["error"]


@pytest.mark.parametrize(
    ("content", "media_type", "status", "message"),
    [
        (b"", "text/csv", 400, "empty"),
        (b"{}", "application/json", 415, "Received: 'application/json'"),
        (b"PK\x03\x04" + b"\0" * 100, "text/csv", 415, "spreadsheet"),
        (b"a,b\n1,2\n", "application/vnd.apache.parquet", 415, "declared type"),
        (b"--x\r\n", "multipart/form-data; boundary=x", 415, "as the whole body"),
    ],
)
def test_bodies_that_are_no_upload_are_refused(
    datasets, content, media_type, status, message
):
    headers = {"content-type": media_type}
    response = datasets.post("/v1/datasets", content=content, headers=headers)
    assert message in refusal(response, status)


def connect(client, headers):
    """Sends the head of an upload."""
    address = (client.base_url.host, client.base_url.port)
    connection = socket.create_connection(address, timeout=60)
    head = (
        "POST /v1/datasets HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
        f"Authorization: {client.headers['authorization']}\r\n{headers}\r\n\r\n"
    )
    connection.sendall(head.encode())
    return connection


def test_a_body_that_grows_too_large_is_refused(datasets):
    def endless():
        for _ in range(50):
            yield b"1,2\n" * 25_000

    response = datasets.post("/v1/datasets", content=endless())
    assert "at most 4000000 bytes" in refusal(response, 413)


@pytest.mark.parametrize("pause", [600, 0.05], ids=["stalls", "byte after byte"])
def test_a_client_that_is_too_slow_is_sent_away(datasets, monkeypatch, pause):
    monkeypatch.setattr(uploading, "STALL_SECONDS", 0.5)
    connection = connect(datasets, "Content-Length: 1000000")
    stop = threading.Event()

    def trickle():
        while not stop.wait(pause):
            try:
                connection.sendall(b"1")
            except OSError:
                return

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        assert b"HTTP/1.1 408 " in connection.recv(65536)
    finally:
        stop.set()
        thread.join()
        connection.close()


def test_nothing_stays_of_a_client_that_hangs_up(datasets, data_dir):
    connection = connect(datasets, "Transfer-Encoding: chunked")
    connection.sendall(b"4\r\na,b\n\r\n")
    wait_until(lambda: leftovers(data_dir))
    connection.close()
