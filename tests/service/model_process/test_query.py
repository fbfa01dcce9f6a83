import gc

import pytest

from service.model_process.codecs.json_rows import read
from service.shared.errors import InvalidRequest


def test_a_body_is_parsed_without_looking_for_garbage() -> None:
    collections: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        collections.append(phase)

    body = b'{"instances": [' + b",".join([b"[]"] * 100_000) + b"]}"
    gc.collect()
    gc.callbacks.append(note)
    try:
        query = read(body, {})
    finally:
        gc.callbacks.remove(note)
    assert len(query.rows) == 100_000
    # One may come right after.
    assert len(collections) <= 2
    assert gc.isenabled()


def test_garbage_is_looked_for_again_after_a_mistake() -> None:
    with pytest.raises(InvalidRequest, match="not JSON"):
        read(b"{", {})
    assert gc.isenabled()


def test_table_locates_a_mistake_in_a_small_body() -> None:
    query = read(b'{"instances": [[NaN]]}', {})
    assert repr(query.rows) == "[[NaN]]"
    assert query.fault is not None


def test_a_large_body_is_not_parsed_again() -> None:
    body = b'{"instances": [[NaN]' + b",[1]" * 2**18 + b"]}"
    with pytest.raises(InvalidRequest, match=r"not JSON: .* column 17 \(char 16\)"):
        read(body, {})
