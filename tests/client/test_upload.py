import pytest

from tfbbb.client.upload import open_upload


def test_an_upload_of_a_wrong_type_is_refused():
    said = "pandas or polars. Received: dict"
    with pytest.raises(TypeError, match=said), open_upload({"a": 1}, None, None):
        pass


def test_a_file_is_sent_as_it_is_with_its_length(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_bytes(b"x\n1\n")
    seen = []
    with open_upload(path, None, lambda *at: seen.append(at)) as upload:
        body = b"".join(upload)
    assert (upload.name, body) == ("houses.csv", b"x\n1\n")
    assert int(upload.headers["Content-Length"]) == len(body)
    assert seen == [(4, 4)]
