import pytest

from tfbbb.client.upload import uploading


def test_what_is_neither_a_file_nor_a_table_is_refused_with_what_to_give():
    said = "path of a file, or a table of pyarrow, pandas or polars. Received: list"
    with pytest.raises(TypeError, match=said), uploading([{"a": 1}], None, None):
        pass
