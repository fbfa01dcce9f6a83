from typing import Any

import pytest

from tfbbb.base.texts import abbreviate


@pytest.mark.parametrize(
    "value",
    [
        1,
        -2.5,
        "text",
        None,
        b"bytes",
        [1, [2]],
        (1,),
        {"a": {"b": [None]}},
        {1},
        [],
        {},
    ],
)
def test_short_values_are_written_as_repr_does(value: Any) -> None:
    assert abbreviate(value) == repr(value)


class Unwritten:
    def __repr__(self) -> str:
        raise AssertionError("it is beyond what is shown")


def nested(depth: int) -> list[Any]:
    value: list[Any] = [Unwritten()]
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        [1] * 1000 + [Unwritten()],
        dict.fromkeys(range(1000), 1) | {"last": Unwritten()},
        nested(2000),
        "a" * 10**7,
        b"a" * 10**6,
    ],
)
def test_the_end_of_a_large_value_is_not_written(value: Any) -> None:
    assert len(abbreviate(value)) <= 100


def test_keys_keep_their_order() -> None:
    assert abbreviate({"b": 1, "a": 2}) == "{'b': 1, 'a': 2}"
