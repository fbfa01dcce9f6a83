import pytest

from tfbbb.client.upload import open_upload


def test_an_upload_of_a_wrong_type_is_refused():
    said = "path of a file or a table of pyarrow, pandas or polars. Received: list"
    with pytest.raises(TypeError, match=said), open_upload([{"a": 1}], None, None):
        pass
