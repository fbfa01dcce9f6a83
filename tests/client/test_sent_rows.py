import pytest

from tfbbb.client.prediction import Prediction
from tfbbb.client.rows import Rows
from tfbbb.client.upload import open_upload


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            {"street": "park road"},
            r"Column 'street' .* \[\{...\}\]. Received: 'park road'",
        ),
        ("more.csv", "`rows` must be .* Received: 'more.csv'"),
    ],
)
def test_rows_of_a_wrong_type_are_refused_with_a_remedy(rows, said):
    with pytest.raises(TypeError, match=said):
        Rows.read(rows)


def test_what_was_not_requested_is_named_with_its_level():
    prediction = Prediction(model="houses", version=1, num_samples=100)
    with pytest.raises(ValueError, match=r"quantiles=.* Received: level=0\.05$"):
        prediction.quantile(0.05)
    with pytest.raises(ValueError, match=r"intervals=.* Received: level=0\.9$"):
        prediction.interval(0.9)


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
