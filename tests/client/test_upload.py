from email import message_from_bytes

import pytest

from tfbbb.client.upload import open_upload


def test_an_upload_of_a_wrong_type_is_refused():
    said = "pandas or polars, or a list of them. Received: dict"
    for table in ({"a": 1}, [{"a": 1}]):
        with pytest.raises(TypeError, match=said), open_upload(table, None, None):
            pass


def test_several_files_are_a_form_of_the_stated_length(tmp_path):
    contents = {"a.csv": b"x\n1\n", 'b".csv': b"x\n--2\n"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    seen = []
    paths = [tmp_path / name for name in contents]
    with open_upload(paths, None, lambda *at: seen.append(at)) as upload:
        body = b"".join(upload)
    assert upload.name == "a.csv"
    assert int(upload.headers["Content-Length"]) == len(body) == seen[-1][0]
    kind = upload.headers["Content-Type"]
    message = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    found = [part.get_payload(decode=True) for part in message.get_payload()]
    assert found == [*contents.values()]
    assert [part.get_filename() for part in message.get_payload()] == [
        "a.csv",
        "b%22.csv",
    ]
