from typing import Any

import pytest

from tfbbb.base.texts import abbreviate, fold_sentences, shown_share


@pytest.mark.parametrize(
    "value", [-2.5, "text", b"bytes", (1,), {"a": {"b": [None]}}, {1}, []]
)
def test_short_values_are_written_as_repr_does(value):
    assert abbreviate(value) == repr(value)


class Unwritten:
    def __repr__(self):
        raise AssertionError("it is beyond what is shown")


def nested(depth):
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
def test_the_end_of_a_large_value_is_not_written(value):
    assert len(abbreviate(value)) <= 100


def test_keys_keep_their_order():
    assert abbreviate({"b": 1, "a": 2}) == "{'b': 1, 'a': 2}"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (1e-7, "less than 0.01 %"),
        (0.0042, "0.42 %"),
        (0.28, "28 %"),
        (1.0, "100 %"),
        (9.5, "950 %"),
        (830.0, "830 times"),
        (8.3e9, "8300000000 times"),
    ],
)
def test_shares_are_written_without_exponents(share, text):
    assert shown_share(share) == text


def test_eighteen_sentences_of_a_kind_are_one():
    names = [f"x{place}" for place in range(18)]
    sentences = [f"Column {name!r} is {name[1:]}.5, too much." for name in names]
    assert fold_sentences(["Other.", *sentences]) == [
        "Other.",
        "Column 'x0' is 0.5, too much. 17 others are alike: 'x1', 'x2', 'x3' and 14 "
        "more.",
    ]
    assert fold_sentences(sentences[:4]) == [
        "Column 'x0' is 0.5, too much. 3 others are alike: 'x1', 'x2' and 'x3'."
    ]
    assert fold_sentences(sentences[:3]) == sentences[:3]


def test_sentences_of_several_kinds_keep_their_order():
    kinds = ["has no value.", "is constant.", "is an identifier."]
    sentences = [f"Column {name!r} {kind}" for name in "ab" for kind in kinds]
    assert fold_sentences(sentences) == sentences
    assert fold_sentences([]) == []
